package py

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
)

// maxThreads bounds the threads that run Do's functions. Only one at a time holds the GIL; the others
// are there for functions that block in Python with the GIL given back.
const maxThreads = 8

// job is one function of Do on its way through a thread.
type job struct {
	f     func(g *GIL) error
	state atomic.Int32
	done  chan struct{} // closed when err is set
	err   error
}

// The states of a job. Only two pass on: running becomes committed or abandoned, once.
const (
	jobRunning   int32 = iota // its caller waits
	jobCommitted              // its caller waits for the result, whatever its context says
	jobAbandoned              // its caller has gone
)

// Do runs f with the GIL held, on a thread of its own, so that it can be called from any goroutine.
// The caller must hold neither the GIL nor a lock that code inside f, or Python code that calls into
// this library, may want.
//
// If ctx ends before f has, Do returns at once with an error that wraps the context's: if f has not
// begun it never will; if it has, it goes on, and what it does or returns is lost, so it must not
// touch its caller's variables any more without asking [GIL.Commit]. After Shut the error wraps
// [core.ErrUnavailable]. Any other error is f's own.
func (i *Interp) Do(ctx context.Context, f func(g *GIL) error) error {
	j := &job{f: f, done: make(chan struct{})}
	if err := ctx.Err(); err != nil {
		return busy(ctx)
	}
	if err := i.submit(ctx, j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobRunning, jobAbandoned) {
			return busy(ctx)
		}
	case <-i.gone:
		if j.state.CompareAndSwap(jobRunning, jobAbandoned) {
			return errGone()
		}
	}
	<-j.done
	return j.err
}

// submit hands the job to an idle thread, to a new one, or to the first that becomes idle.
func (i *Interp) submit(ctx context.Context, j *job) error {
	select {
	case i.jobs <- j:
		return nil
	default:
	}
	if i.grow() {
		go i.thread(j)
		return nil
	}
	select {
	case i.jobs <- j:
		return nil
	case <-ctx.Done():
		return busy(ctx)
	case <-i.shut:
		return errGone()
	}
}

func busy(ctx context.Context) error {
	return &core.Error{
		Op: "enter python", Kind: ctx.Err(), Err: errors.New("the interpreter was busy"),
		Remedy: "the program holds Python's lock for long, or was asked for something that does not end",
	}
}

func errGone() error {
	return &core.Error{Op: "enter python", Kind: core.ErrUnavailable, Err: errors.New("the interpreter is ending")}
}

// SetRoom says how to find out whether the process may have more threads. Where it may not, functions of [Interp.Do] wait for those
// that there are, at least one.
func (i *Interp) SetRoom(room func() bool) { i.room.Store(&room) }

// grow counts one more thread, if there may be one.
func (i *Interp) grow() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || i.threads == maxThreads {
		return false
	}
	if room := i.room.Load(); room != nil && i.threads > 0 && !(*room)() {
		return false
	}
	i.threads++
	return true
}

// thread runs jobs until Shut or EndIdle. It stays locked to its OS thread, which ends with it.
func (i *Interp) thread(j *job) {
	runtime.LockOSThread()
	var state threadState
	for {
		i.run(&state, j)
		select {
		case j = <-i.jobs:
		case <-i.idle:
			i.mu.Lock()
			i.threads--
			i.mu.Unlock()
			i.forget(&state)
			return
		case <-i.shut:
			return
		}
	}
}

// EndIdle ends the threads that have nothing to do. Do makes others when it needs them.
func (i *Interp) EndIdle() {
	for {
		select {
		case i.idle <- struct{}{}:
		default:
			return
		}
	}
}

// forget has Python forget a thread that ends, which is this one. After Shut it does nothing.
func (i *Interp) forget(state *threadState) {
	if state.p == 0 || !i.enter() {
		return
	}
	defer i.exit()
	state.end()
}

func (i *Interp) run(state *threadState, j *job) {
	defer close(j.done)
	j.err = i.on(state, &j.state, func(g *GIL) error {
		err := j.f(g)
		g.Commit()
		return err
	})
}
