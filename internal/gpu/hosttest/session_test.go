//go:build cuda

package hosttest

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// session starts a program that serves arrays on a GPU.
func session(t *testing.T) *hostplugin.Session {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{{
		Name: "gpu", Plugin: exe, Env: map[string]string{producerVariable: "1", "GORACE": "atexit_sleep_ms=0"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	s, err := host.Start(t.Context(), "gpu")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func view(t *testing.T, s *hostplugin.Session, name string) *core.View {
	t.Helper()
	v, err := s.View(t.Context(), name, hostplugin.Writable())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSession: an array on a GPU is a view of the session, on the host's device, and its lease is given
// back when the GPU is done with it.
func TestSession(t *testing.T) {
	t.Parallel()
	s := session(t)
	v := view(t, s, "ready")
	if v.Device() != (core.Device{Kind: core.CUDA}) || v.Route() != contract.RouteCUDAIPC || v.Copied() || !v.Writable() {
		t.Errorf("on %v by %v, copied %v, writable %v", v.Device(), v.Route(), v.Copied(), v.Writable())
	}
	got := make([]float32, elements)
	if _, err := core.Copy(t.Context(), got, v); err != nil {
		t.Fatal(err)
	}
	for _, x := range got {
		if x != float(7) {
			t.Fatalf("the program has %g", x)
		}
	}
	work := stream(t)
	err := kernel(t, "add").Launch(work, once, v, uint64(elements), float32(1), uint64(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Leases == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d leases stand", info.Leases)
		}
	}
	if err := work.Synchronize(t.Context()); err != nil {
		t.Errorf("the memory was taken from under the kernel: %v", err)
	}
	if _, err := s.View(t.Context(), "elsewhere"); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("memory of a GPU that the host has not named: %v", err)
	}
}

// TestSessionEnds: a stream that waits for work of the program comes free when that dies, or when the
// session is closed, and says so.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *hostplugin.Session){
		"the program dies": func(t *testing.T, s *hostplugin.Session) {
			info, err := s.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := os.FindProcess(info.PID)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		},
		"the session is closed": func(t *testing.T, s *hostplugin.Session) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := session(t)
			v := view(t, s, "late")
			work := stream(t)
			if err := kernel(t, "add").Launch(work, once, v, uint64(elements), float32(1), uint64(0)); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() { waited <- v.Wait(t.Context()) }()
			end(t, s)
			if err := work.Synchronize(t.Context()); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("Synchronize = %v", err)
			}
			if err := <-waited; !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed) {
				t.Errorf("Wait = %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			runtime.KeepAlive(v) // the session closes the view, not the garbage collector
		})
	}
}
