package heap

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// python runs a script with the library preloaded and gives the JSON that it prints.
func python[T any](t *testing.T, interpreter string, env []string, script string) T {
	t.Helper()
	helpers, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	env = append([]string{"PYTHONPATH=" + helpers, "PYTHONDONTWRITEBYTECODE=1"}, env...)
	out := run(t, command(t, interpreter, library(t), env, []string{file}))
	var value T
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return value
}

// TestWhatIsShared asks where each kind of array of each framework lies, with nothing changed in the
// framework.
func TestWhatIsShared(t *testing.T) {
	t.Parallel()
	got := python[map[string]string](t, harness.PythonAll(t), nil, `
import io, json
import jax, jax.numpy as jnp, numpy as np, torch, ndheap

n = 1 << 15
where = {}
def numpy(name, a): where["numpy " + name] = ndheap.where(a.ctypes.data)
def tensor(name, a): where["torch " + name] = ndheap.where(a.data_ptr())
def array(name, a): where["jax " + name] = ndheap.where(a.block_until_ready().unsafe_buffer_pointer())

a = np.arange(n, dtype="f8")
numpy("arange", a)
numpy("empty", np.empty(n))
numpy("zeros", np.zeros(n))
numpy("sum of two", a + a)
numpy("matmul", np.ones((200, 200)) @ np.ones((200, 200)))
numpy("sort", np.sort(a))
numpy("random", np.random.default_rng(1).random(n))
numpy("fft", np.fft.fft(a))
numpy("copy of a view", a[::2].copy())
numpy("interior", a[100:])
file = io.BytesIO()
np.save(file, a)
file.seek(0)
numpy("load", np.load(file))
grown = np.arange(n, dtype="f8")
grown.resize(3 * n, refcheck=False)
numpy("resize", grown)
numpy("objects", np.full(n, None))
numpy("text", np.full(n, "abc"))
numpy("structured", np.zeros(n, [("x", "f4"), ("y", "i8")]))
numpy("small", np.ones(100))
numpy("from bytes", np.frombuffer(bytes(8 * n), "f8"))

x = torch.arange(n, dtype=torch.float64)
tensor("arange", x)
tensor("zeros", torch.zeros(n))
tensor("sum of two", x + x)
tensor("matmul", torch.ones(200, 200) @ torch.ones(200, 200))
layer = torch.nn.Conv2d(3, 64, 5)
images = torch.rand(4, 3, 32, 32)
tensor("convolution", layer(images))
w = torch.ones(n, requires_grad=True)
(w * w).sum().backward()
tensor("gradient", w.grad)
tensor("from numpy", torch.from_numpy(a))
tensor("share_memory_", torch.zeros(n).share_memory_())
tensor("small", torch.ones(100))

y = jnp.arange(n, dtype="f4")
array("arange", y)
array("jit", jax.jit(lambda v: v * 2 + 1)(y))
array("matmul", jnp.ones((200, 200)) @ jnp.ones((200, 200)))
array("gradient", jax.grad(lambda v: (v * v).sum())(y))
array("device_put", jax.device_put(a.astype("f4")))
array("small", jnp.ones(100))
print(json.dumps(where))
`)
	elsewhere := []string{
		"numpy small", "numpy from bytes", "torch small", "torch share_memory_", "jax small",
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		want := "heap"
		if slices.Contains(elsewhere, name) {
			want = "elsewhere"
		}
		if got[name] != want {
			t.Errorf("%s lies in %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 32 {
		t.Errorf("%d kinds were looked at, want 32", len(got))
	}
}

// TestPinnedArraysAreNotReused drops arrays while somebody outside has mapped their pages, makes many
// others of their sizes, and looks again.
func TestPinnedArraysAreNotReused(t *testing.T) {
	t.Parallel()
	got := python[map[string][]bool](t, harness.PythonAll(t), nil, `
import gc, json
import numpy as np, torch, ndheap

def address(a): return a.data_ptr() if isinstance(a, torch.Tensor) else a.ctypes.data

def look(make, other):
    a = make()
    at, size, pinned = address(a), 8 * a.shape[0], ndheap.pin(address(a))
    before = ndheap.pages(at, size)
    with ndheap.mapped(pinned) as outside:
        same = outside[:size] == before
        del a
        gc.collect()
        others = [other() for _ in range(30)]
        apart = at not in [address(o) for o in others] and outside[:size] == before
    del others
    unpinned = ndheap.unpin(at)
    again = other()
    return [same, apart, unpinned, address(again) == at]

print(json.dumps({
    "numpy %d" % n: look(lambda: np.arange(n, dtype="f8"), lambda: np.full(n, 7.0)) for n in (1 << 14, 1 << 17, 1 << 19)
} | {
    "torch %d" % n: look(lambda: torch.arange(n, dtype=torch.float64), lambda: torch.full((n,), 7.0, dtype=torch.float64))
    for n in (1 << 14, 1 << 17, 1 << 19)
}))
`)
	if len(got) != 6 {
		t.Errorf("%d arrays were looked at, want 6", len(got))
	}
	what := []string{"its pages are the file's", "nobody reuses it while it is pinned", "it can be unpinned", "it is reused then"}
	for name, held := range got {
		for i, ok := range held {
			if !ok {
				t.Errorf("%s: not so: %s", name, what[i])
			}
		}
	}
}

// TestSteadyPrograms runs the same work for long: neither memory nor descriptors may grow, and nearly
// all blocks must come from those freed before.
func TestSteadyPrograms(t *testing.T) {
	t.Parallel()
	type state struct{ Resident, Descriptors, Taken, Reused, Refused int }
	got := python[[2]state](t, harness.PythonAll(t), nil, `
import gc, json, os
import numpy as np, torch, ndheap

def work(rounds):
    for i in range(rounds):
        a = np.arange(10000 + 1000 * (i % 40), dtype="f8")
        b = (a + 1) * a
        c = torch.from_numpy(b)
        d = (c * 2).reshape(10, -1).sum(0)
        e = np.concatenate([b, b, b[::2]])
        assert e[1] == 2.0 and d.shape[0] * 10 == len(a)
        if i % 100 == 0:
            ndheap.trim(2000)  # as the plugin does

def state():
    gc.collect()
    resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
    s = ndheap.stats()
    return dict(resident=resident, descriptors=s.descriptors, taken=s.taken, reused=s.reused, refused=s.refused)

work(400)
before = state()
work(4000)
print(json.dumps([before, state()]))
`)
	before, after := got[0], got[1]
	t.Logf("%+v, then %+v", before, after)
	if grown := after.Resident - before.Resident; grown > 16<<20 {
		t.Errorf("resident memory grew by %d bytes", grown)
	}
	if after.Descriptors > before.Descriptors || after.Refused != 0 {
		t.Errorf("descriptors %d, then %d; %d refused", before.Descriptors, after.Descriptors, after.Refused)
	}
	taken, reused := after.Taken-before.Taken, after.Reused-before.Reused
	if taken < 4*4000 || reused < taken*99/100 {
		t.Errorf("of %d blocks only %d were recycled", taken, reused)
	}
}

// TestSettings gives the library's environment variables values, good and bad.
func TestSettings(t *testing.T) {
	t.Parallel()
	const threshold, libraries = "NDBRIDGE_HEAP_THRESHOLD=", "NDBRIDGE_HEAP_LIBRARIES="
	// Where an array of 16 KiB, one of 1 MiB and a bytearray of 1 MiB lie, and what the heap says.
	const usual, off = "elsewhere heap elsewhere on", "elsewhere elsewhere elsewhere off"
	for _, c := range []struct {
		name string
		env  []string
		want string
	}{
		{"none", nil, usual},
		{"off", []string{threshold + "0"}, off},
		{"low", []string{threshold + "4096"}, "heap heap elsewhere on"},
		{"lower than can be", []string{threshold + "1"}, "heap heap elsewhere on"},
		{"high", []string{threshold + "100000000"}, "elsewhere elsewhere elsewhere idle"},
		{"higher than any", []string{threshold + "99999999999999999999999"}, "elsewhere elsewhere elsewhere idle"},
		{"negative", []string{threshold + "-1"}, usual},
		{"no number", []string{threshold + "64k"}, usual},
		{"empty", []string{threshold, libraries}, usual},
		{"every caller", []string{libraries + "*"}, "elsewhere heap heap on"},
		{"one more", []string{libraries + "libthey"}, usual},
		{"others only", []string{libraries + "=libthey,libthose"}, "elsewhere elsewhere elsewhere idle"},
		{"numpy only", []string{libraries + "=_multiarray_umath"}, usual},
		{"too long", []string{libraries + "=" + strings.Repeat("x", 10000)}, usual},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := python[string](t, harness.Python(t), c.env, `
import ctypes, json
import numpy as np, ndheap
a, b, c = np.ones(1 << 11), bytearray(1 << 20), np.ones(1 << 17)
places = [a.ctypes.data, c.ctypes.data, ctypes.addressof(ctypes.c_char.from_buffer(b))]
print(json.dumps(" ".join([ndheap.where(p) for p in places] + [ndheap.state()])))
`)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestClosedDescriptors lets Python close all descriptors that it did not open, in each version's own way.
func TestClosedDescriptors(t *testing.T) {
	t.Parallel()
	for _, interpreter := range harness.Pythons(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(interpreter))), func(t *testing.T) {
			t.Parallel()
			got := python[[]string](t, interpreter, nil, `
import json, os, subprocess, sys
import numpy as np, ndheap
a, b = np.ones(1 << 13), np.ones(1 << 18)
file = os.open("/dev/null", os.O_RDONLY)
os.closerange(3, 1 << 16)
where = [ndheap.where(x.ctypes.data) for x in (a, b)]
try:
    os.fstat(file)
except OSError:
    file = "closed"
open_in_child = subprocess.run([sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"],
                               stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
print(json.dumps(where + [file, open_in_child]))
`)
			if want := []string{"heap", "heap", "closed", "4"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
