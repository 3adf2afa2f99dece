//go:build cuda

// Package gputest tests what a program does with its arrays on GPUs, with a real host and objects that
// speak the protocols by themselves: on the simulated driver, whose work on streams takes time.
package gputest

import (
	"context"
	_ "embed" // gpu.py
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/gpu.py
var gpu string

// options say how a program runs. The zero value is two devices, and the generic adapter as it is.
type options struct {
	sync    contract.SyncPolicy
	faults  string
	devices string // "" means two
	jax     []hostplugin.QuirkSetting
	noRing  bool
}

// start runs a script behind gpu.py, and waits until it has ended: its arrays stay.
func start(t *testing.T, script string, opts options) *hostplugin.Session {
	t.Helper()
	s := launch(t, script, opts)
	ctx, cancel := context.WithTimeout(t.Context(), programtest.Patience)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// launch runs a script behind gpu.py.
func launch(t *testing.T, script string, opts options) *hostplugin.Session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(file, []byte(gpu+script), 0o600); err != nil {
		t.Fatal(err)
	}
	if opts.devices == "" {
		opts.devices = "2"
	}
	host, err := hostplugin.New(hostplugin.Config{
		Adapters: []hostplugin.Adapter{{Name: "generic", Sync: opts.sync}, {Name: "jax", Quirks: opts.jax}},
		Programs: []hostplugin.Program{{
			Name: "gpu", Python: programtest.Variable(t, "NDBRIDGE_TEST_PYTHON"), Script: file,
			Handoff: hostplugin.HandoffOptions{Off: opts.noRing},
			Env: map[string]string{
				"LD_LIBRARY_PATH": programtest.Variable(t, "NDBRIDGE_TEST_CUDASIM"),
				"CUDASIM_FAULTS":  opts.faults,
				"CUDASIM_DEVICES": opts.devices,
			},
		}},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // some have to be killed
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), programtest.Patience)
	defer cancel()
	s, err := host.Start(ctx, "gpu")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// take takes a view, which the test's end closes.
func take(t *testing.T, s *hostplugin.Session, name string) *core.View {
	t.Helper()
	v, err := try(t, s, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func try(t *testing.T, s *hostplugin.Session, name string, opts ...hostplugin.ViewOption) (*core.View, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programtest.Patience)
	defer cancel()
	v, err := s.View(ctx, name, opts...)
	if err == nil {
		t.Cleanup(func() { _ = v.Close() })
	}
	return v, err
}

// floats reads a view's elements, wherever they are, once they may be read.
func floats(t *testing.T, v *core.View) []float32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programtest.Patience)
	defer cancel()
	data := make([]float32, v.Len())
	var err error
	if v.Layout().Device().HostReadable() {
		if err = v.Wait(ctx); err == nil {
			_, err = core.Copy(t.Context(), data, v)
		}
	} else {
		_, err = core.Copy(ctx, data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// all fails unless the view has elements, and each is the value.
func all(t *testing.T, v *core.View, value float32) {
	t.Helper()
	data := floats(t, v)
	if len(data) == 0 {
		t.Errorf("%s: no elements", v.Name())
	}
	for i, x := range data {
		if x != value {
			t.Errorf("%s: element %d of %d is %v, expected %v", v.Name(), i, len(data), x, value)
			return
		}
	}
}

// refused fails unless the error has the category and says the text.
func refused(t *testing.T, name string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; expected %v that says %q", name, err, kind, text)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(programtest.Patience / 2); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
