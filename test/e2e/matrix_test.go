package e2e

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestVersionMatrix runs one plugin file in every CPython 3.8 to 3.14 of this machine, each with an
// old and a new numpy. In CI there must be at least three minor versions.
func TestVersionMatrix(t *testing.T) {
	t.Parallel()
	const wanted = 3
	minors := map[string]bool{}
	for _, python := range harness.Pythons(t) {
		venv := filepath.Base(filepath.Dir(filepath.Dir(python))) // "3.8-old"
		minor, _, _ := strings.Cut(venv, "-")
		minors[minor] = true
		t.Run(venv, func(t *testing.T) {
			t.Parallel()
			worksIn(t, python, minor)
		})
	}
	if len(minors) >= wanted {
		return
	}
	var missing []string
	for _, minor := range []string{"3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"} {
		if !minors[minor] {
			missing = append(missing, minor)
		}
	}
	message := "the matrix has only %d minor versions of Python, want %d; install some of %v (on PATH or under pyenv) and run make venvs"
	if harness.CI() {
		t.Errorf(message, len(minors), wanted, missing)
	} else {
		t.Logf(message, len(minors), wanted, missing)
	}
}

func worksIn(t *testing.T, python, minor string) {
	t.Helper()
	run := harness.Start(t, `
import os, sys
import numpy as np
import ndbridge, remote

big = np.arange(1 << 18, dtype="f4").reshape(512, 512)
turned = big.T[::-1]
small = np.array([1.5, 2.5])
mapped = np.memmap(os.path.join(os.path.dirname(__file__), "mapped"), "i2", "w+", shape=(1 << 15,))
big_endian = np.arange(1 << 14).astype(">f8")
dates = np.arange(1 << 14).astype("M8[s]")
record = np.zeros(1 << 13, [("x", "<f4"), ("n", "<i8")])
things = {"a": [big]}
objects = np.array([None] * 9)
offered = big[1:]
ndbridge.publish("offered", offered)
remote.serve()
`, harness.Options{Python: python})
	run.View(t, "offered").Close() // the script has imported numpy: Info does not wait for that
	info, err := run.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(info.Interpreter, "CPython "+minor+".") {
		t.Errorf("the interpreter is %q, want CPython %s", info.Interpreter, minor)
	}
	if len(info.Frameworks) == 0 || info.Frameworks[0].Name != "numpy" {
		t.Fatalf("frameworks %+v, want numpy first", info.Frameworks)
	}
	if got := harness.Eval[string](t, run.Remote, "np.__version__"); info.Frameworks[0].Version != got {
		t.Errorf("numpy's version is said to be %s and is %s", info.Frameworks[0].Version, got)
	}

	view := run.View(t, "turned", hostplugin.Writable())
	if view.Route() != contract.RouteSharedHeap {
		t.Fatalf("route %v (%v), want shared-heap", view.Route(), view.Reason())
	}
	if x, err := core.At[float32](view, 511, 3); err != nil || x != 3*512 {
		t.Errorf("turned[511, 3] is %v (%v), want %v", x, err, 3*512)
	}
	if err := core.Set(view, float32(-1), 0, 0); err != nil {
		t.Error(err)
	}
	if got := harness.Eval[float32](t, run.Remote, "float(big[0, 511])"); got != -1 {
		t.Errorf("Python sees %v after the host wrote -1", got)
	}
	for name, want := range map[string]struct {
		route core.Route
		dtype string
	}{
		"big":            {contract.RouteSharedHeap, "float32"},
		"things['a'][0]": {contract.RouteSharedHeap, "float32"},
		"offered":        {contract.RouteSharedHeap, "float32"},
		"small":          {contract.RouteStaged, "float64"},
		"mapped":         {contract.RouteMappedFile, "int16"},
		"big_endian":     {contract.RouteSharedHeap, "opaque[8]"},
		"dates":          {contract.RouteSharedHeap, "opaque[8]"},
		"record":         {contract.RouteSharedHeap, "opaque[12]"},
	} {
		view := run.View(t, name)
		if view.Route() != want.route || view.DType().String() != want.dtype {
			t.Errorf("%s: %v by route %v (%v), want %s by %v",
				name, view.DType(), view.Route(), view.Reason(), want.dtype, want.route)
		}
		data := make([]byte, view.NBytes())
		if _, err := core.CopyBytes(t.Context(), data, view); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if hex.EncodeToString(data) != harness.Eval[string](t, run.Remote, name+".tobytes().hex()") {
			t.Errorf("%s: the bytes differ from numpy's", name)
		}
	}
	if _, err := run.Session.View(t.Context(), "objects"); err == nil {
		t.Error("got a view of an object array")
	}
	pid := run.PID(t)
	if err := run.Close(); err != nil || harness.Alive(pid) {
		t.Errorf("Close: %v; the program lives: %v", err, harness.Alive(pid))
	}
}

// eachPython runs a test on every CPython of this machine, at the same time.
func eachPython(t *testing.T, test func(t *testing.T, python string)) {
	t.Helper()
	for _, python := range harness.Pythons(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) {
			t.Parallel()
			test(t, python)
		})
	}
}
