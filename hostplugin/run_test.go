package hostplugin_test

import (
	"errors"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// runnable gives a program that runs code.
func runnable(t *testing.T, name, code string) hostplugin.Program {
	t.Helper()
	return hostplugin.Program{Python: os.Getenv("NDBRIDGE_TEST_PYTHON"), Script: write(t, name, code)}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"plain.py": "plain", "-.odd name.py": "odd_name", "ünï.py": "_n_"} {
		p := runnable(t, file, "import numpy as np; x = np.arange(6)")
		s, err := hostplugin.Run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.View(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if x, err := core.Slice[int64](v); err != nil || len(x) != 6 || x[5] != 5 {
			t.Errorf("%v, %v", x, err)
		}
		if info, err := s.Info(t.Context()); err != nil || info.Program != name {
			t.Errorf("the program is called %q, want %q: %v", info.Program, name, err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if _, err := v.Bytes(); !errors.Is(err, core.ErrClosed) { // v is still known, or it would be a leak
			t.Error(err)
		}
		if !errors.Is(s.Err(), core.ErrClosed) {
			t.Error(s.Err())
		}
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	for want, p := range map[error]hostplugin.Program{
		core.ErrConfig: {Script: "missing.py"},
		core.ErrPython: runnable(t, "raises.py", "raise ValueError('no')"),
	} {
		s, err := hostplugin.Run(t.Context(), p)
		if err == nil { // the script is run after the start
			err = errors.Join(s.Wait(t.Context()), s.Close())
		}
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if _, err := hostplugin.Run(t.Context(), hostplugin.Program{}); err == nil {
		t.Error("a program of nothing was run")
	}
}
