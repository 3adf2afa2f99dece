package py

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// undisturbed is how long functions that are inside when the interpreter is shut may go on as they are.
const undisturbed = 250 * time.Millisecond

// Interp is the Python interpreter of this process. All methods are safe for concurrent use.
type Interp struct {
	version        string
	implementation string
	executable     string
	header         int  // bytes with which every object begins
	usual          bool // see describeHeader
	noFrames       error

	exact                map[Object]string // builtin types that [GIL.ExactType] knows
	intClass, floatClass Object

	jobs chan *job
	idle chan struct{} // taken by a thread that ends
	shut chan struct{} // closed by Shut: nothing enters any more
	gone chan struct{} // closed when nothing is inside any more, or Shut has given up waiting

	ending *atomic.Uint32         // 1 when closed is set: for those who have waited for the GIL, C among them
	next   atomic.Pointer[func()] // see AfterNext
	gate   *gate                  // counts the threads that hold the GIL or wait for it; closed when closed is set

	room atomic.Pointer[func() bool] // see SetRoom

	mu      sync.Mutex
	closed  bool
	threads int
	end     sync.Once // closes gone

	namesMu  sync.Mutex
	names    map[string]cName  // of capsules
	interned map[string]Object // with a reference each; for as long as the interpreter runs
	nothing  Object            // likewise; 0: it was not needed yet

	plains sync.Pool // of *Plain, which are large
}

// Open finds the interpreter of this process. It takes the GIL, so the caller must not hold it.
// Errors wrap [core.ErrUnsupported] if there is no CPython in this process, and [core.ErrVersion] if
// it is too old.
func Open() (*Interp, error) {
	return openBy(func(i *Interp, f func(g *GIL) error) error { return i.Do(context.Background(), f) })
}

// OpenWithin is Open for a thread that holds the GIL already because Python called us.
func OpenWithin() (*Interp, error) { return openBy((*Interp).Within) }

func openBy(do func(i *Interp, f func(g *GIL) error) error) (*Interp, error) {
	switch code, missing := capiOpen(); code {
	case 0:
	case capiTooOld:
		return nil, &core.Error{
			Op: "open python", Kind: core.ErrVersion, Err: errors.New("the interpreter has no " + missing),
			Remedy: "use CPython 3.8 or newer",
		}
	default:
		return nil, &core.Error{
			Op: "open python", Kind: core.ErrUnsupported, Err: errors.New("no CPython runs in this process"),
			Remedy: "use CPython 3.8 or newer; PyPy and other implementations are not supported",
		}
	}
	version, _, _ := strings.Cut(capiVersion(), " ")
	if !atLeast(version, 8) {
		return nil, &core.Error{
			Op: "open python", Kind: core.ErrVersion, Err: fmt.Errorf("the interpreter is Python %s", version),
			Remedy: "use CPython 3.8 or newer",
		}
	}
	i := &Interp{
		version:  version,
		jobs:     make(chan *job),
		idle:     make(chan struct{}),
		shut:     make(chan struct{}),
		gone:     make(chan struct{}),
		ending:   new(atomic.Uint32),
		gate:     newGate(),
		names:    make(map[string]cName),
		interned: make(map[string]Object),
	}
	if err := do(i, i.describe); err != nil {
		return nil, err
	}
	return i, nil
}

// atLeast reports whether a version such as "3.11.7" or "3.14.0rc1" is 3.least or newer.
func atLeast(version string, least int) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(strings.TrimRight(minor, "+abrc"))
	return err1 == nil && err2 == nil && (a > 3 || a == 3 && b >= least)
}

// describe reads what cannot change.
func (i *Interp) describe(g *GIL) error {
	sys, err := g.Import("sys")
	if err != nil {
		return err
	}
	if o, ok, err := g.AttrOK(sys, "executable"); err != nil {
		return err
	} else if ok && g.IsStr(o) {
		if i.executable, err = g.Text(o); err != nil {
			return err
		}
	}
	impl, err := g.Attr(sys, "implementation")
	if err != nil {
		return err
	}
	name, err := g.Attr(impl, "name")
	if err != nil {
		return err
	}
	if i.implementation, err = g.Text(name); err != nil {
		return err
	}
	if err := i.describeHeader(g); err != nil {
		return err
	}
	return i.openFrames(g)
}

// describeHeader finds out whether objects begin as they do where there is a GIL: with the count of
// references and the type, a word each.
func (i *Interp) describeHeader(g *GIL) error {
	builtins, err := g.Import("builtins")
	if err != nil {
		return err
	}
	object, err := g.Attr(builtins, "object")
	if err != nil {
		return err
	}
	size, err := g.Attr(object, "__basicsize__")
	if err != nil {
		return err
	}
	n, err := g.Int64(size)
	if err != nil {
		return err
	}
	i.header, i.usual = int(n), n == 16
	i.exact = map[Object]string{g.Type(builtins): "module"}
	for _, name := range []string{"dict", "list", "tuple"} {
		class, err := g.Attr(builtins, name)
		if err != nil {
			return err
		}
		i.exact[class] = name
	}
	for name, class := range map[string]*Object{"int": &i.intClass, "float": &i.floatClass} {
		if *class, err = g.Attr(builtins, name); err != nil {
			return err
		}
	}
	if i.usual && !atLeast(i.version, 12) { // from then on only Python code runs the collector
		capiHoldCollection()
	}
	return nil
}

// Version gives the interpreter's version: "3.11.7".
func (i *Interp) Version() string { return i.version }

// Implementation gives its name, as sys.implementation has it: "cpython".
func (i *Interp) Implementation() string { return i.implementation }

// Executable gives sys.executable, or "" if Python does not know it.
func (i *Interp) Executable() string { return i.executable }

func (i *Interp) cName(name string) cName {
	i.namesMu.Lock()
	defer i.namesMu.Unlock()
	n, ok := i.names[name]
	if !ok {
		n = newCName(name)
		i.names[name] = n
	}
	return n
}

// on runs f with the GIL held on the thread that state belongs to, which is this one. outcome is that of
// the job that f is, or nil.
func (i *Interp) on(state *threadState, outcome *atomic.Int32, f func(g *GIL) error) error {
	if !i.enter() {
		return errGone()
	}
	defer i.exit()
	defer i.nextDone()
	state.enter()
	defer state.leave()
	// While this thread waited for the GIL its caller may have gone, or the interpreter begun to end.
	if outcome != nil && outcome.Load() == jobAbandoned {
		return nil
	}
	if !i.gate.begin(state) {
		return errGone()
	}
	defer i.gate.end(state)
	g := &GIL{interp: i, thread: state, outcome: outcome}
	defer state.forget()
	defer g.release(0, 0)
	return f(g)
}

// Within runs f on this thread, which holds the GIL already because Python called us. f must not call
// Do.
func (i *Interp) Within(f func(g *GIL) error) error {
	defer capiRestoreCollection() // which Unlocked holds off
	g := &GIL{interp: i, thread: &threadState{}}
	defer g.release(0, 0)
	return f(g)
}

// enter counts a thread in, unless nothing may enter any more.
func (i *Interp) enter() bool { return i.gate.enter() }

func (i *Interp) exit() { i.gate.leave() }

// Shut closes the interpreter to this library, for good: nothing enters any more, and Do fails with
// [core.ErrUnavailable]. It waits until nothing is inside, and reports whether that was reached. Functions that
// have begun have timeout to end; after 250 ms of it, Shut raises SystemExit in the Python code that they run. The
// caller must not hold the GIL.
//
// Python must be shut before it finalizes. CPython ends or freezes every thread that asks for the GIL after that,
// and 3.10 crashes if one has asked before: it frees the interpreter, which the thread looks at once more. So Shut
// waits without a limit for threads that wait for the GIL to begin: each of them gets it, and gives it back at once,
// no later than Shut's caller could go on.
func (i *Interp) Shut(timeout time.Duration) bool {
	i.mu.Lock()
	if !i.closed {
		i.closed = true
		i.ending.Store(1)
		close(i.shut)
		i.gate.close()
	}
	i.mu.Unlock()

	defer i.end.Do(func() { close(i.gone) })
	begun := time.Now()
	<-i.gate.calm
	if i.isEmptyBy(begun.Add(min(timeout, undisturbed))) {
		return true
	}
	i.interrupt()
	return i.isEmptyBy(begun.Add(timeout))
}

func (i *Interp) isEmptyBy(t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-i.gate.empty:
		return true
	case <-timer.C:
	}
	select { // at once, if it is late
	case <-i.gate.empty:
		return true
	default:
		return false
	}
}

// interrupt interrupts the functions that are inside.
func (i *Interp) interrupt() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var state threadState
	state.enter()
	defer state.leave()
	i.gate.interrupt()
}
