package core

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Leak is a view that was forgotten: it became unreachable without having been closed. Its memory and its lease
// stay until the process or the session ends.
type Leak struct {
	Name  string    // the view's name
	Size  int64     // bytes of the view's elements; it may hold on to more memory
	Stack []uintptr // program counters of the code that made it, innermost first
}

// String says which view was forgotten and where it was made, one function a line.
func (l Leak) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "view %q of %d bytes was never closed; it was made by", l.Name, l.Size)
	frames := runtime.CallersFrames(l.Stack)
	for more := len(l.Stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
	}
	return b.String()
}

// leaks holds the observers. It is the one piece of state of this package: the garbage collector,
// which finds the leaks, is one for the whole process too.
//
//nolint:gochecknoglobals // see above
var leaks struct {
	active    atomic.Int32
	mu        sync.Mutex
	observers map[int]func(Leak)
	next      int
}

// ObserveLeaks calls f for each view made from now on that the garbage collector finds to be forgotten. Such views
// are only reported: to unmap their memory would turn every slice that is still in use into a fault. f runs on a
// goroutine of the runtime and must not block. While there is an observer, every new view costs a stack trace.
//
// The function stop ends the observation; it may be called more than once. Observers may be added and removed
// concurrently.
func ObserveLeaks(f func(Leak)) (stop func()) {
	leaks.mu.Lock()
	defer leaks.mu.Unlock()
	if leaks.observers == nil {
		leaks.observers = make(map[int]func(Leak))
	}
	id := leaks.next
	leaks.next++
	leaks.observers[id] = f
	leaks.active.Add(1)
	return sync.OnceFunc(func() {
		leaks.mu.Lock()
		defer leaks.mu.Unlock()
		delete(leaks.observers, id)
		leaks.active.Add(-1)
	})
}

// watch is what is remembered of a view beside it, for the report if it is forgotten.
type watch struct {
	open atomic.Bool
	leak Leak
}

// observe has v reported if it is forgotten. The stack leaves out as many functions as skip says, the
// innermost of which is the caller.
func (v *View) observe(skip int) {
	if leaks.active.Load() == 0 {
		return
	}
	stack := make([]uintptr, 32)
	v.watch = &watch{leak: Leak{v.Name(), v.NBytes(), stack[:runtime.Callers(2+skip, stack)]}}
	v.watch.open.Store(true)
	runtime.AddCleanup(v, report, v.watch)
}

func report(w *watch) {
	if !w.open.Load() {
		return
	}
	leaks.mu.Lock()
	var observers []func(Leak)
	for _, f := range leaks.observers {
		observers = append(observers, f)
	}
	leaks.mu.Unlock()
	for _, f := range observers {
		f(w.leak)
	}
}
