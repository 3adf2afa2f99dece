package coretest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// Main runs the tests of a package and fails if they left views that nobody can close any more. It reports each with
// the stack of the code that made it. Call it from TestMain; it does not return.
func Main(m *testing.M) { os.Exit(run(m.Run, os.Stderr)) } //nolint:forbidigo // it ends a TestMain

// run is Main without the end of the process.
func run(tests func() int, out io.Writer) int {
	leaks := Leaks()
	code := tests()
	found := leaks()
	for _, l := range found {
		_, _ = fmt.Fprintln(out, "leak:", l)
	}
	if code == 0 && len(found) > 0 {
		return 1
	}
	return code
}

// Leaks starts to look for forgotten views. The function that it returns ends the search and returns the views that were
// made in between and that nobody can close any more. It collects garbage first, which takes some milliseconds.
func Leaks() func() []core.Leak {
	var (
		mu    sync.Mutex
		found []core.Leak
	)
	stop := core.ObserveLeaks(func(l core.Leak) {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, l)
	})
	return func() []core.Leak {
		for range 3 { // a view may be kept alive by what is found to be garbage only now
			collect()
		}
		stop()
		mu.Lock()
		defer mu.Unlock()
		return found
	}
}

// collect collects garbage and gives cleanups time to run. They run in no fixed order, so it waits for
// one of its own and a little longer.
func collect() {
	const longest, after = 2 * time.Second, 5 * time.Millisecond
	done := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(ch chan struct{}) { close(ch) }, done)
	runtime.GC()
	select {
	case <-done:
	case <-time.After(longest):
	}
	<-time.After(after)
}
