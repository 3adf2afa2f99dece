//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
)

// used lets the host open and copy an array of each kind, and gives them back.
func used(t *testing.T, r *remote) {
	t.Helper()
	for _, c := range routes {
		handle := r.alloc(c.route, c.sizes...)
		v, released := r.view(lease(t, handle, r.fill(handle, 1, true), core.Uint8, false))
		r.open()
		if _, err := core.Copy(t.Context(), make([]byte, v.NBytes()), v); err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		within(t, "the release", released)
	}
}

// TestEndsBesideAWaitingStream: while a stream waits for one program's work, whatever else the host ends
// comes to its end, and other streams work. The calls of the driver that would wait for that stream, and
// keep all others out meanwhile, are made when it waits no longer.
func TestEndsBesideAWaitingStream(t *testing.T) {
	t.Parallel()
	if !alone(t) { // its streams wait for long
		return
	}
	busy, idle, other, late := start(t), start(t), start(t), start(t)
	f, module := kernel(t, "add"), loaded(t)
	host := hostView(t, 1024, true)
	unpin, err := cuda.Pin(0, host)
	if err != nil {
		t.Fatal(err)
	}
	readyHandle := busy.alloc(contract.RouteCUDAIPC, 4096)
	ready, _ := busy.view(lease(t, readyHandle, busy.fill(readyHandle, 1, false), core.Float32, true))
	used(t, idle)
	used(t, other)
	lateHandle := late.alloc(contract.RouteCUDAIPC, 4096)
	lateView, released := late.view(lease(t, lateHandle, late.fill(lateHandle, 1, false), core.Uint8, false))
	handle := busy.alloc(contract.RouteCUDAIPC, 4096)
	v, _ := busy.view(lease(t, handle, busy.fill(handle, 2, true), core.Float32, true))
	waiting, calm := stream(t), stream(t)
	if err := waiting.Wait(v); err != nil {
		t.Fatal(err)
	}
	eachInTime(t, busy, []step{
		{"the end of the importer of another program, whose views are closed", other.importer.Close},
		{"the end of pinned memory", unpin},
		{"the end of a module", module.Close},
		{"the end of an importer that the waiting stream's context still keeps from ending", func() error {
			return errors.Join(lateView.Close(), late.importer.Close())
		}},
		{"the end of memory that nobody has used for a while", func() error {
			<-time.After(idleTime) // nobody tells when it has gone
			return nil
		}},
		{"a launch on another stream", func() error {
			return f.Launch(calm, once, ready, uint64(ready.Len()), float32(1), uint64(0))
		}},
		{"the work of another stream", func() error { return calm.Synchronize(t.Context()) }},
	})
	goesOn(t, busy, waiting)
	within(t, "the release of what was closed beside it", released)
	again, err := cuda.Pin(0, host)
	if err != nil {
		t.Fatalf("what was unpinned is pinned still: %v", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// TestBeginsBesideAWaitingStream: while a stream waits for one program's work, the host begins to use others,
// by all routes, and what it has not used before: a kernel, streams, pinned memory, copies.
func TestBeginsBesideAWaitingStream(t *testing.T) {
	t.Parallel()
	if !alone(t) { // its streams wait for long
		return
	}
	busy, other := start(t), start(t)
	f := kernel(t, "add")
	handle := busy.alloc(contract.RouteCUDAIPC, 4096)
	v, _ := busy.view(lease(t, handle, busy.fill(handle, 2, true), core.Float32, true))
	waiting := stream(t)
	if err := waiting.Wait(v); err != nil {
		t.Fatal(err)
	}
	host := hostView(t, 1024, true)
	var views []*core.View
	var s *cuda.Stream
	var unpin func() error
	steps := []step{
		{"to make a stream", func() error { s = stream(t); return nil }},
		{"to pin memory", func() (err error) { unpin, err = cuda.Pin(0, host); return err }},
	}
	for name, c := range routes {
		steps = append(steps, step{"to open memory, " + name, func() error {
			handle := other.alloc(c.route, c.sizes...)
			view, _ := other.view(lease(t, handle, other.fill(handle, 1, false), core.Float32, true))
			views = append(views, view)
			return nil
		}}, step{"to copy, " + name, func() error {
			last := views[len(views)-1]
			_, err := core.Copy(t.Context(), make([]float32, last.Len()), last)
			return err
		}}, step{"to launch, " + name, func() error {
			last := views[len(views)-1]
			err := f.Launch(s, once, last, uint64(last.Len()), float32(1), uint64(0))
			return errors.Join(err, s.Synchronize(t.Context()))
		}})
	}
	steps = append(steps, step{"to launch on pinned memory", func() error {
		err := f.Launch(s, once, host, uint64(host.Len()), float32(1), uint64(0))
		return errors.Join(err, s.Synchronize(t.Context()))
	}})
	eachInTime(t, busy, steps)
	goesOn(t, busy, waiting)
	if err := unpin(); err != nil {
		t.Error(err)
	}
}

// TestLoadsBesideAWaitingStream: the driver waits for all streams when it loads code. So code is loaded when
// none waits for a program any more, nobody else waits for that, and its own caller only until its context ends.
func TestLoadsBesideAWaitingStream(t *testing.T) {
	t.Parallel()
	if !alone(t) { // its streams wait for long
		return
	}
	busy := start(t)
	module, used := loaded(t), kernel(t, "copy")
	handle := busy.alloc(contract.RouteCUDAIPC, 4096)
	v, _ := busy.view(lease(t, handle, busy.fill(handle, 2, true), core.Float32, true))
	waiting, calm := stream(t), stream(t)
	if err := waiting.Wait(v); err != nil {
		t.Fatal(err)
	}
	loads := map[string]func(context.Context) error{
		"a module": func(ctx context.Context) error {
			m, err := cuda.LoadModule(ctx, 0, kernels(t))
			if err == nil {
				t.Cleanup(func() { m.Close() })
			}
			return err
		},
		"a kernel": func(ctx context.Context) error { _, err := module.Function(ctx, "add"); return err },
	}
	loading := make(chan error, len(loads))
	var steps []step
	for what, load := range loads {
		steps = append(steps, step{"to load " + what, func() error {
			cause := errors.New("not for so long")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause)
			defer cancel()
			if err := load(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cause) {
				t.Errorf("%s was loaded beside a stream that waits: %v", what, err)
			}
			go func() { loading <- load(t.Context()) }()
			return nil
		}})
	}
	host := hostView(t, 1024, true)
	unpin, err := cuda.Pin(0, host)
	if err != nil {
		t.Fatal(err)
	}
	steps = append(steps, step{"to launch beside those that load", func() error {
		err := used.Launch(calm, once, host, host, uint64(0), uint64(0))
		return errors.Join(err, calm.Synchronize(t.Context()))
	}})
	eachInTime(t, busy, steps)
	select {
	case err := <-loading:
		t.Errorf("it was loaded beside a stream that waits: %v", err)
	default:
	}
	goesOn(t, busy, waiting)
	for range loads {
		if err := <-loading; err != nil {
			t.Error(err)
		}
	}
	if err := unpin(); err != nil {
		t.Error(err)
	}
}

// TestNothingBlocksBesideAWaitingStream: while one stream waits for a program, views close and other programs get their
// leases back, however many; launches on that stream return until there are too many, and then say so.
func TestNothingBlocksBesideAWaitingStream(t *testing.T) {
	t.Parallel()
	if !alone(t) { // its streams wait for long
		return
	}
	const closes, launches = 2000, 3000
	busy, other := start(t), start(t)
	f := kernel(t, "add")
	lateHandle, handle := busy.alloc(contract.RouteCUDAIPC, 4096), busy.alloc(contract.RouteCUDAIPC, 4096)
	otherHandle := other.alloc(contract.RouteCUDAIPC, 4096)
	ready := lease(t, handle, busy.fill(handle, 1, false), core.Float32, true)
	others := lease(t, otherHandle, other.fill(otherHandle, 1, false), core.Float32, true)
	late, _ := busy.view(lease(t, lateHandle, busy.fill(lateHandle, 2, true), core.Float32, true))
	waiting, calm := stream(t), stream(t)
	launch := func(s *cuda.Stream, v *core.View) error {
		return f.Launch(s, once, v, uint64(1), float32(1), uint64(0))
	}
	var full error
	var slow []time.Duration
	timed := func(do func() error) error {
		began := time.Now()
		err := do()
		slow = append(slow, time.Since(began))
		return err
	}
	eachInTime(t, busy, []step{
		{"a launch that waits", func() error { return launch(waiting, late) }},
		{"a close", func() error {
			for range closes {
				v, _ := busy.view(ready)
				if err := launch(calm, v); err != nil {
					return err
				}
				if err := timed(v.Close); err != nil {
					return err
				}
			}
			return nil
		}},
		{"the return of another program's lease", func() error {
			for range 20 {
				v, released := other.view(others)
				if err := errors.Join(launch(calm, v), v.Close()); err != nil {
					return err
				}
				within(t, "the release", released)
			}
			return nil
		}},
		{"the close of a view that the stream has used", func() error {
			v, _ := busy.view(ready)
			return errors.Join(launch(waiting, v), timed(v.Close))
		}},
		{"a launch", func() error {
			for i := 0; i < launches && full == nil; i++ {
				full = timed(func() error { return launch(waiting, late) })
			}
			return nil
		}},
	})
	if !errors.Is(full, core.ErrUnavailable) || !strings.Contains(full.Error(), "wait for a program; synchronize the stream") {
		t.Errorf("after %d launches: %v", launches, full)
	}
	slices.Sort(slow)
	if p99 := slow[len(slow)*99/100]; p99 > 20*time.Millisecond { // a machine of tests is busy with other things, too
		t.Errorf("p99 of Close and Launch is %v", p99)
	}
	goesOn(t, busy, waiting)
	if err := errors.Join(launch(waiting, late), waiting.Synchronize(t.Context())); err != nil {
		t.Errorf("a launch when nothing waits any more: %v", err)
	}
}

// step is something that a stream that waits must not keep from being done.
type step struct {
	what string
	do   func() error
}

// eachInTime does one thing after the other, and opens busy's gate if one takes too long.
func eachInTime(t *testing.T, busy *remote, steps []step) {
	t.Helper()
	for _, s := range steps {
		done := make(chan error, 1)
		go func() {
			defer close(done) // also if it has failed the test itself
			done <- s.do()
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", s.what, err)
			}
		case <-time.After(20 * time.Second):
			busy.open() // or nothing ends here, either
			t.Fatalf("%s waits for the stream", s.what)
		}
	}
}

// goesOn fails unless a stream waits until busy's gate is opened.
func goesOn(t *testing.T, busy *remote, waiting *cuda.Stream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := waiting.Synchronize(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stream does not wait any more: %v", err)
	}
	busy.open()
	if err := waiting.Synchronize(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndsBesideAKernel: what the host ends while a kernel still works on a closed view does not wait for
// the kernel, nor keeps other calls waiting for it.
func TestEndsBesideAKernel(t *testing.T) {
	t.Parallel()
	if !alone(t) { // its streams wait for long
		return
	}
	const kernelTime = 3 * time.Second
	busy, other := start(t), start(t)
	used(t, other)
	f, s := kernel(t, "add"), stream(t)
	handle := busy.alloc(contract.RouteCUDAIPC, 4096)
	v, released := busy.view(lease(t, handle, busy.fill(handle, 1, false), core.Float32, true))
	if err := f.Launch(s, once, v, uint64(v.Len()), float32(1), uint64(kernelTime)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.Close(), other.importer.Close()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Synchronize(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of another program's memory came after the kernel: %v", err)
	}
	within(t, "the release", released)
}
