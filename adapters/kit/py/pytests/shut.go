package main

import "C"

import (
	"context"
	"errors"
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

// ndHammer starts a crowd of that size. Each member goes on until the interpreter is shut.
//
//export ndHammer
func ndHammer(n C.int) C.int {
	if err := lib.open(); err != nil {
		return 1
	}
	h := &lib.hammer
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
