package entry

// #include "lifecycle.h"
import "C"

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/engine"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/serving"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// hosts are those that have come to this process. The program of each follows what plugin.program has published, which has no host itself.
//
//nolint:gochecknoglobals // see plugin
var hosts struct {
	mu       sync.Mutex
	programs []*engine.Program // the oldest first

	entering sync.Mutex // one host at a time
	ended    bool       // nobody can enter any more; guarded by entering
	separate sync.Once

	first atomic.Bool // the first host enters, and is told of what was published when nobody could say whether it may be
}

// ndGoWake makes Go open the descriptors with which it waits for others; it ends the process if there are none left. Gives 0, or 1 if it did not.
//
//export ndGoWake
func ndGoWake() C.int {
	r, w, err := os.Pipe()
	if err != nil {
		return 1
	}
	_, _ = r.Close(), w.Close()
	return 0
}

// ndGoOpen makes the program that hosts find. The caller holds the GIL, for which nobody waits who has hosts.entering.
//
//export ndGoOpen
func ndGoOpen(status C.int) C.int {
	hosts.entering.Lock()
	defer hosts.entering.Unlock()
	err := errEnding()
	if err == nil && plugin.program == nil {
		go wire.Warm()
		hosts.separate.Do(separate)
		err = open(py.OpenWithin)
		hosts.first.Store(err == nil)
	}
	if err != nil {
		report(int(status), err)
		return 1
	}
	stir()
	return 0
}

// separate has the plugin open files where the program does not see them, if it can.
func separate() {
	poller, waker := int(C.nd_poller(0)), int(C.nd_poller(1))
	if poller < 0 {
		return
	}
	if gate, err := shm.SeparateLate(poller, waker); err == nil {
		C.nd_hold(C.int(gate))
	}
}

// errEnding says that it is too late for a host, if it is. The caller has hosts.entering.
func errEnding() error {
	if !hosts.ended {
		return nil
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: errors.New("the program is ending"), Remedy: "start it again"}
}

// ndGoClose closes the interpreter to hosts, those to come included.
//
//export ndGoClose
func ndGoClose() {
	hosts.entering.Lock()
	first := !hosts.ended
	hosts.ended = true
	hosts.entering.Unlock()
	if first && plugin.interp != nil {
		plugin.interp.Shut(closeTimeout)
	}
}

// ndGoAttach serves a host, and takes the descriptors over. The caller holds the GIL. Why it cannot is told to the host.
//
//export ndGoAttach
func ndGoAttach(side, stream C.int) C.int {
	file := os.NewFile(uintptr(stream), "stream")
	conn, err := net.FileConn(file)
	err = errors.Join(err, file.Close())
	sideConn, failed := fdpass.FromFD(int(side))
	if failed != nil {
		_ = syscall.Close(int(side)) // it is not one of ours
	}
	if err = errors.Join(err, failed); err == nil {
		if err = attach(sideConn, conn); err == nil {
			return 0
		}
		report(int(side), err)
	}
	if conn != nil {
		_ = conn.Close()
	}
	if sideConn != nil {
		_ = sideConn.Close()
	}
	return C.int(syscall.EIO)
}

// attach serves a host on side and conn, unless there is an error. The caller holds the GIL.
func attach(side *fdpass.Conn, conn net.Conn) error {
	number, err := enter(side, conn)
	if err != nil {
		return err
	}
	stir() // the program may have taken long since ndGoOpen
	p := plugin.program.Sibling()
	hosts.mu.Lock()
	hosts.programs = append(hosts.programs, p)
	hosts.mu.Unlock()
	hosts.first.Store(false)
	_ = plugin.interp.Within(func(g *py.GIL) error { // never fails
		p.Follow(g, plugin.program)
		p.Learn(g)
		return nil
	})
	plugin.interp.AfterNext(looked)
	go serveHost(p, side, conn, func() { C.nd_leave_host(number) })
	return nil
}

// looked has the program's main thread go on that has stepped aside for a host.
func looked() { C.nd_looked() }

// enter takes one of the places for hosts.
func enter(side *fdpass.Conn, conn net.Conn) (C.int, error) {
	hosts.entering.Lock()
	defer hosts.entering.Unlock()
	if err := errEnding(); err != nil {
		return -1, err
	}
	number := C.nd_enter_host(C.int(side.Descriptor()), C.int(descriptor(conn)))
	if number < 0 {
		return -1, errors.New("the process has 16 hosts, as many as it can have")
	}
	return number, nil
}

func descriptor(conn net.Conn) (number int) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { number = int(fd) }) // fails after Close alone
		}
	}
	return number
}

// serveHost greets a host, and runs until it has gone.
func serveHost(p *engine.Program, side *fdpass.Conn, conn net.Conn, leave func()) {
	if err := side.Send(wire.Greeting()); err == nil {
		_ = serving.On(context.Background(), p, side, conn) // the host knows
	}
	hosts.mu.Lock()
	hosts.programs = slices.DeleteFunc(hosts.programs, func(q *engine.Program) bool { return q == p })
	hosts.mu.Unlock()
	_, _ = side.Close(), conn.Close()
	looked() // if it has looked at nothing
	leave()
	_ = p.End() // nobody is there to be told
	stir()
}

// present gives the programs of the hosts that are there, the oldest first.
func present() []*engine.Program {
	hosts.mu.Lock()
	defer hosts.mu.Unlock()
	return slices.Clone(hosts.programs)
}

// lender gives the program whose host has a function of that name that the calling thread may call: the host that the thread runs a function
// for, or else the one that has come last.
func lender(g *py.GIL, name string) *engine.Program {
	all := present()
	for _, p := range all {
		if p.Carries(g) && p.Lets(name) {
			return p
		}
	}
	for _, p := range slices.Backward(all) {
		if p.Lets(name) {
			return p
		}
	}
	return plugin.program
}
