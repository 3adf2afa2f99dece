package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const manyScript = `
import numpy as np, remote
names = ["?", "i1", "<u2", ">i4", "<i8", "<f2", "<f4", ">f8", "<c8", "<c16", "M8[ns]", "M8[D]", "m8[s]", "S5", "<U3", "V7"]
def forms(a):
    b = a.copy(); b.setflags(write=False)
    return [a, b, a[::2], a[::-1], a.reshape(2, -1).T, np.asfortranarray(a.reshape(2, -1)), a[:, None], a[:1], a[:0], a[3:4].reshape(()), np.broadcast_to(a, (2, a.size)),
            a.copy().view("u1") if a.itemsize == 3 else a.copy()]
def every(n):
    arrays = [x for name in names for x in forms((np.arange(12) + n).astype(name) if name[0] != "V" else np.array([bytes([n + i] * 7) for i in range(12)], "V7"))]
    records = np.zeros(6, [("a", "i1"), ("b", "<f8")]); records["b"] = n
    return arrays + [records["b"], records["a"], np.zeros((70, 300), "f4") + n, (np.zeros((70, 300), "f4") + n).T]
one = np.arange(1, 25, dtype="i4") * (1 << 16 | 1)
def changed(n):
    if n == 1: one.dtype = "f4"
    if n == 2: one.shape = 4, 6
    if n == 3: one.setflags(write=False)
    if n == 4: one.dtype = "i2"
    return {"one": one, "dtype": one.dtype.name, "shape": list(one.shape), "writable": one.flags.writeable, "bytes": one.tobytes()}

class Told:
    times = 0
    @property
    def __array_interface__(self):
        Told.times += 1
        return one.__array_interface__
def many(n): return {"first": Told(), "rest": [one] * (n - 1)}
def told(): return Told.times
def bad(): return {"a": [one, {"b": np.zeros(2, object)}]}
remote.serve()
`

// TestCallsOfManyArrays: arrays of all forms in results are described in the same way each time, changes in place are seen, and too many arrays are
// refused before one of them is read.
func TestCallsOfManyArrays(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, manyScript, harness.Options{})
	sameEachTime(t, fn(t, run, "every"), 100, func(i int, views []*core.View) error {
		x, err := core.At[float32](views[len(views)-1], 299, 69)
		return errors.Join(err, isValue(x, float32(i)))
	})
	seesChanges(t, fn(t, run, "changed"))
	refusesTooMany(t, fn(t, run, "many"), fn(t, run, "told"))
	if _, err := fn(t, run, "bad").Call(t.Context()); !errors.Is(err, core.ErrDType) || !strings.Contains(err.Error(), `result["a"][1]["b"]`) {
		t.Error(err)
	}
}

func isValue[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("an element is %v, want %v", got, want)
	}
	return nil
}

// sameEachTime compares what arrays of several calls are described as. There are at least so many in each, which are checked when all have come.
func sameEachTime(t *testing.T, every *hostplugin.Func, least int, check func(i int, views []*core.View) error) {
	t.Helper()
	var results []hostplugin.Result
	var first []string
	for i := range 4 {
		r, err := every.Call(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
		for n, v := range r.Views() {
			now := fmt.Sprint(v.DType(), v.Layout().Tag(), v.Shape(), v.Strides(), v.ReadOnly(), v.Route(), v.Reason(), v.Quirks(), v.Framework())
			if i == 0 {
				first = append(first, now)
			} else if now != first[n] {
				t.Errorf("array %d of call %d: %s, want %s", n, i, now, first[n])
			}
		}
	}
	for i, r := range results {
		if err := check(i, r.Views()); err != nil || len(r.Views()) < least {
			t.Errorf("call %d: %d arrays, %v", i, len(r.Views()), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// seesChanges has an array changed in place between two calls.
func seesChanges(t *testing.T, changed *hostplugin.Func) {
	t.Helper()
	for i := range 10 {
		var out struct {
			One      *core.View
			DType    string
			Shape    []int
			Writable bool
			Bytes    []byte
		}
		if err := call(t, changed, i/2).Decode(&out); err != nil {
			t.Fatal(err)
		}
		bytes, err := out.One.Bytes()
		if err != nil || out.One.DType().String() != out.DType || !slices.Equal(out.One.Shape(), out.Shape) || out.One.ReadOnly() == out.Writable ||
			!slices.Equal(bytes, out.Bytes) {
			t.Errorf("call %d: %v %v, read-only %v, %v %v, want %+v", i, out.One.DType(), out.One.Shape(), out.One.ReadOnly(), bytes, err, out)
		}
	}
}

// refusesTooMany: too many arrays are refused before one of them is asked for its memory.
func refusesTooMany(t *testing.T, many, told *hostplugin.Func) {
	t.Helper()
	const most = 1 << 16
	_, err := many.Call(t.Context(), most+1)
	if !errors.Is(err, core.ErrUnsupported) || !strings.Contains(err.Error(), "at most 65536 arrays") {
		t.Error(err)
	}
	var times int
	if err := call(t, told).Decode(&times); err != nil || times != 0 {
		t.Errorf("the first of too many arrays was asked for its memory %d times; %v", times, err)
	}
}
