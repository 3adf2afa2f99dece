package main

import "C"

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// hammer is a crowd of goroutines that want to enter the interpreter.
type hammer struct {
	crowd sync.WaitGroup
	wrong atomic.Pointer[error]
}

// enterOnThread enters the interpreter from a thread of its own, until that is shut. Nobody waits for it:
// it may wait for the lock when the interpreter ends.
func (h *hammer) enterOnThread() {
	runtime.LockOSThread()
	thread := lib.interp.Thread()
	checks := make([]py.Check, 1)
	for {
		err := thread.Do(func(g *py.GIL) (err error) {
			main, err := g.Main()
			if err != nil {
				return err
			}
			name, err := g.NewKey("lib")
			if err != nil {
				return err
			}
			globals, err := g.Attr(main, "__dict__")
			if err != nil {
				return err
			}
			o, err := g.Item(globals, name)
			if err != nil {
				return err
			}
			steps := []py.Step{{Kind: py.StepKey, Class: g.Type(globals), Key: name}}
			checks[0].Watch, _, err = g.Watch(0, steps, &py.Marks{Class: g.Type(o)}, o)
			return err
		})
		switch {
		case errors.Is(err, core.ErrUnavailable):
			return
		case err != nil:
			h.wrong.Store(&err)
			return
		}
		for checks[0].Same = true; checks[0].Same; { // until nothing enters any more
			thread.Check(checks)
		}
	}
}

// ndHammer starts a crowd of that size, and with it a thread that enters at full rate. Each goes on until
// the interpreter is shut.
//
//export ndHammer
func ndHammer(n C.int) C.int {
	if err := lib.open(); err != nil {
		return 1
	}
	h := &lib.hammer
	if n > 0 {
		go h.enterOnThread()
	}
	for range n {
		h.crowd.Go(func() {
			for {
				err := lib.interp.Do(context.Background(), func(g *py.GIL) error {
					_, err := g.Import("sys")
					return err
				})
				if err == nil {
					continue
				}
				if !errors.Is(err, core.ErrUnavailable) {
					h.wrong.Store(&err)
				}
				return
			}
		})
	}
	return 0
}

// ndCall calls a Python function, which it is handed with the GIL held, from a thread of the library's.
//
//export ndCall
func ndCall(f uintptr) {
	_ = lib.interp.Within(func(g *py.GIL) error {
		g.Keep(py.Object(f))
		return nil
	})
	go func() {
		_ = lib.interp.Do(context.Background(), func(g *py.GIL) error {
			_, err := g.Call(py.Object(f), nil, nil)
			return err
		})
	}()
}

// ndShut shuts the interpreter, after and within times in milliseconds. It gives 0 if nothing is inside
// afterwards, 1 if something still is, and another number if a promise was broken.
//
//export ndShut
func ndShut(after, within C.int) C.int {
	time.Sleep(time.Duration(after) * time.Millisecond)
	limit := time.Duration(within) * time.Millisecond
	start := time.Now()
	clean := lib.interp.Shut(limit)
	if time.Since(start) > limit+patience {
		return 2
	}
	lib.hammer.crowd.Wait() // those who wait are told, even if a thread is stuck
	if err := lib.interp.Do(context.Background(), func(*py.GIL) error { return nil }); !errors.Is(err, core.ErrUnavailable) {
		return 3
	}
	if lib.hammer.wrong.Load() != nil {
		return 4
	}
	if lib.interp.Shut(limit) != clean {
		return 5
	}
	if !clean {
		return 1
	}
	return 0
}
