//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
)

// TestStreamWaits: a kernel of the host reads what the program's work has written, though it was
// launched before that began; without the fence it reads what was there before.
func TestStreamWaits(t *testing.T) {
	t.Parallel()
	for name, fenced := range map[string]bool{"with the fence": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			from, to := r.alloc(contract.RouteCUDAIPC, 1<<20), r.alloc(contract.RouteCUDAPool, 1<<20)
			r.fill(from, 1, false)
			r.fill(to, 0, false)
			fence := r.fill(from, 2, true)
			if !fenced {
				fence = contract.Ready{}
			}
			in, _ := r.view(lease(t, from, fence, core.Float32, false))
			out, _ := r.view(lease(t, to, contract.Ready{}, core.Float32, true))
			s := stream(t)
			err := kernel(t, "copy").Launch(s, cuda.LaunchConfig{Grid: cuda.Dim3{1}, Block: cuda.Dim3{256}}, out, cuda.In(in), uint64(in.Len()), uint64(0))
			if err != nil {
				t.Fatal(err)
			}
			if !fenced { // it does not wait
				if err := s.Synchronize(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.check(to, 1)
			}
			r.open()
			if err := s.Synchronize(t.Context()); err != nil {
				t.Fatal(err)
			}
			if fenced {
				r.check(to, 2)
			}
		})
	}
}

// TestWaitObeysContext: the CPU waits for the program's work, but not for ever.
func TestWaitObeysContext(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAIPC, 4096)
	v, _ := r.view(lease(t, handle, r.fill(handle, 1, true), core.Uint8, false))
	s := stream(t)
	if err := s.Wait(v); err != nil {
		t.Fatal(err)
	}
	for what, wait := range map[string]func(context.Context) error{
		"View.Wait":          v.Wait,
		"Copy":               func(ctx context.Context) error { _, err := core.Copy(ctx, make([]byte, 4096), v); return err },
		"Stream.Synchronize": s.Synchronize,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) || core.Category(err) != "deadline exceeded" {
			t.Errorf("%s = %v", what, err)
		}
		cancel()
	}
	r.open()
	if err := errors.Join(v.Wait(t.Context()), s.Synchronize(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestProgramDies: while a stream of the host waits for the program's work, the program is killed. The
// stream comes free, and everything says why nothing will come any more.
func TestProgramDies(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle, other := r.alloc(contract.RouteCUDAIPC, 1<<20), r.alloc(contract.RouteCUDAIPC, 1<<20)
	ready, _ := r.view(lease(t, other, r.fill(other, 1, false), core.Float32, true))
	late, released := r.view(lease(t, handle, r.fill(handle, 2, true), core.Float32, false))
	s, calm, f := stream(t), stream(t), kernel(t, "copy")
	launch := func(s *cuda.Stream, from *core.View) error {
		return f.Launch(s, once, ready, cuda.In(from), uint64(16), uint64(0))
	}
	if err := errors.Join(launch(s, late), launch(calm, ready)); err != nil {
		t.Fatal(err)
	}
	copied, waited, done := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := core.Copy(t.Context(), make([]float32, late.Len()), late)
		copied <- err
	}()
	go func() { waited <- late.Wait(t.Context()) }()
	go func() { done <- s.Synchronize(t.Context()) }()
	r.kill()
	cause := errors.New("the program was killed")
	r.importer.Lost(cause)
	r.importer.Lost(errors.New("another cause"))
	unavailable(t, "a copy that was waiting", <-copied, cause)
	unavailable(t, "a wait that was waiting", <-waited, cause)
	unavailable(t, "the stream that was waiting", <-done, cause)
	if err := s.Synchronize(t.Context()); err != nil {
		t.Errorf("the stream, after it has said so: %v", err)
	}
	if err := calm.Synchronize(t.Context()); err != nil {
		t.Errorf("a stream that has waited for nothing: %v", err)
	}
	for what, v := range map[string]*core.View{"ready": ready, "late": late} {
		unavailable(t, what+": launch", launch(calm, v), cause)
		unavailable(t, what+": Stream.Wait", calm.Wait(v), cause)
		unavailable(t, what+": View.Wait", v.Wait(t.Context()), cause)
		_, err := core.Copy(t.Context(), make([]float32, v.Len()), v)
		unavailable(t, what+": Copy", err, cause)
	}
	_, err := core.Put(t.Context(), ready, make([]float32, ready.Len()))
	unavailable(t, "Put", err, cause)
	_, _, err = r.importer.Memory(t.Context(), lease(t, handle, contract.Ready{}, core.Uint8, false), nil)
	unavailable(t, "Memory", err, cause)
	late.Close()
	within(t, "the release", released)
}

// TestReleaseAfterKernel: a lease is given back only when the host's kernels have read its memory: what
// the program does with it then, they do not see.
func TestReleaseAfterKernel(t *testing.T) {
	t.Parallel()
	for name, c := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			from, to := r.alloc(c.route, c.sizes...), r.alloc(contract.RouteCUDAIPC, 8<<20)
			in, released := r.view(lease(t, from, r.fill(from, 1, false), core.Float32, false))
			r.fill(to, 0, false)
			out, _ := r.view(lease(t, to, contract.Ready{}, core.Float32, true))
			part, err := out.Sub(0, 0, in.Len())
			if err != nil {
				t.Fatal(err)
			}
			defer part.Close()
			s := stream(t)
			const late = 100 * time.Millisecond
			err = kernel(t, "copy").Launch(s, cuda.LaunchConfig{Grid: cuda.Dim3{1}, Block: cuda.Dim3{256}}, part, cuda.In(in), uint64(in.Len()), uint64(late))
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			within(t, "the release", released)
			r.fill(from, 9, false)
			if err := s.Synchronize(t.Context()); err != nil {
				t.Fatal(err)
			}
			data := make([]float32, part.Len())
			if _, err := core.Copy(t.Context(), data, part); err != nil {
				t.Fatal(err)
			}
			for i, x := range data {
				if x != float(1) {
					t.Fatalf("element %d is %g, not what was there before the release", i, x)
				}
			}
		})
	}
}
