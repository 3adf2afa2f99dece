package entry

// #include "lifecycle.h"
import "C"

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long the plugin stays as it is when the last host has left: the next one may come at once.
	patience = time.Second

	// publishes is the same when the program publishes for hosts to come, as it may do again and again.
	publishes = time.Minute
)

// rest is what the plugin does while it has no host: it has given back what can be given back of a Go library, which cannot be unloaded, and
// all that is left of it sleeps.
//
//nolint:gochecknoglobals // see plugin
var rest struct {
	mu    sync.Mutex
	timer *time.Timer // begins it
	stirs uint64      // counts what it has to begin anew for
	on    bool
	procs int  // GOMAXPROCS before
	gc    int  // GOGC before
	quiet bool // nothing is collected: nothing is made
}

// stir ends the rest, if there is one, and has the next one begin when there is no host. A host is about to come, or one has left.
func stir() {
	rest.mu.Lock()
	defer rest.mu.Unlock()
	if rest.on {
		rest.on = false
		collect()
		if runtime.GOMAXPROCS(rest.procs); os.Getenv("GOMAXPROCS") == "" {
			runtime.SetDefaultGOMAXPROCS() // and follow what the control group allows, as before
		}
		plugin.program.Tend(true)
		spare()
	}
	again(patience)
}

// used lets go of as much of the rest as the program needs that publishes meanwhile. It makes no thread: there may be no room for one.
func used() {
	rest.mu.Lock()
	defer rest.mu.Unlock()
	if rest.quiet {
		collect()
		again(publishes)
	}
}

// collect has Go collect garbage as before. The caller has rest.mu.
func collect() {
	if rest.quiet {
		rest.quiet = false
		debug.SetGCPercent(rest.gc)
	}
}

// again has the rest begin after a time. The caller has rest.mu.
func again(after time.Duration) {
	rest.stirs++
	if rest.timer == nil {
		rest.timer = time.AfterFunc(after, begin)
	}
	rest.timer.Reset(after)
}

// begin begins the rest, unless there is a host. One that comes meanwhile waits for nothing that takes long.
func begin() {
	rest.mu.Lock()
	stirs := rest.stirs
	rest.mu.Unlock()
	if C.nd_hosts() > 0 {
		return // stir is called when it leaves
	}
	plugin.interp.EndIdle()
	debug.FreeOSMemory()
	debug.FreeOSMemory() // what pools have kept at the first time
	if still(stirs, sleep) {
		// From a timer, for which a thread wakes up that waits for other ones.
		time.AfterFunc(time.Millisecond, func() { endThreads(stirs, new(ending)) })
	}
}

// still calls do, unless the rest is to begin anew.
func still(stirs uint64, do func()) bool {
	rest.mu.Lock()
	defer rest.mu.Unlock()
	if rest.stirs != stirs {
		return false
	}
	do()
	return true
}

// sleep has Go do nothing by itself, such as a collection every two minutes. The caller has rest.mu.
func sleep() {
	rest.quiet = true
	rest.gc = debug.SetGCPercent(-1)
	if !rest.on {
		rest.on = true
		plugin.program.Tend(false)
		rest.procs = runtime.GOMAXPROCS(1) // so that Go wakes no thread beside the one that works
	}
}

// ending is a chain of calls of endThreads.
type ending struct {
	threads int           // that Go had at the last call
	vain    int           // calls in a row after which there were no fewer: Go has made a thread, since none was idle
	first   chan struct{} // closed when the first thread can go on; nil: it was not met
}

// endThreads ends the thread that it runs on, which was idle, and goes on with the next one. Go never does so by itself.
func endThreads(stirs uint64, e *ending) {
	const enough = 3
	runtime.LockOSThread()
	now, _ := runtime.ThreadCreateProfile(nil)
	if e.vain++; now < e.threads {
		e.vain = 0
	}
	e.threads = now
	if over := !still(stirs, func() {}); over || e.vain == enough || !bool(C.nd_threads_left(roomForThreads)) {
		runtime.UnlockOSThread()
		if e.first != nil {
			close(e.first)
		}
		if !over {
			C.nd_rest()
		}
		return
	}
	go endThreads(stirs, e)
	if unix.Gettid() == plugin.thread { // Go's first one cannot end: it stays away meanwhile
		defer runtime.UnlockOSThread()
		e.first = make(chan struct{})
		<-e.first
	}
}
