package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// long is a wait for more rows that no test lasts.
const long = time.Hour

const batchModel = `
import collections, dataclasses, threading, time, numpy as np, remote
def predict(x, scale=1.0):
    time.sleep(0.002)
    return x * scale
Pair = collections.namedtuple("Pair", "first second")
@dataclasses.dataclass
class Box:
    row: object
    pair: object
def tree(x):
    return {"a": x + 1, "items": [{"n": int(r[0]), "row": r} for r in x], "pair": (x.sum(axis=1), None), "named": Pair(x, [str(r[0]) for r in x]), "box": Box(x, {})}
seen = []
def look(x):
    seen.append(x[:, 0].tolist())
    return x[:, :1].copy()
def addr(x): return [[r.__array_interface__["data"][0], len(x)] for r in x]
def big(x):
    global kept
    kept = x * 2
    return kept
def alter(v): kept[...] = v
gate = threading.Event()
begun = threading.Event()
interrupted = []
def blocked(x):
    seen.append(x[:, 0].tolist())
    begun.set()
    try:
        while not gate.is_set(): time.sleep(0.001)
    except BaseException as e:
        interrupted.append(type(e).__name__)
        raise
    return x
def opened():
    gate.set()
def closed():
    gate.clear(); begun.clear()
def waits(): begun.wait()
def fails(x): raise ValueError("%d rows" % len(x))
def nothing(x): x[...] = 0
def wrong(x, which):
    n = len(x)
    return {"list": [1] * (n + 1), "array": x[1:], "deep": {"a": (x, [x[:1], x])}, "field": Pair(x, [1]), "scalar": n, "set": {1, 2}, "axes": np.float32(1)[...], "text": "ab"}[which]
def dies(x): import os; os._exit(3)
remote.serve()
`

// batch makes batches of rows of four numbers until the test ends.
func batch(t *testing.T, f *hostplugin.Func, o hostplugin.BatchOptions) *hostplugin.Batch {
	t.Helper()
	o.DType, o.Shape = core.Float32, []int{4}
	b, err := f.Batch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// number fills a row with a number.
func number(n float32) func(*core.View) error {
	return func(row *core.View) error {
		data, err := core.Slice[float32](row)
		for i := range data {
			data[i] = n
		}
		return err
	}
}

// inOneBatch makes calls that come into one batch, if that has room, and gives their results, which are closed when the test ends.
func inOneBatch(t *testing.T, b *hostplugin.Batch, calls int) ([]hostplugin.Result, []error) {
	t.Helper()
	results, errs := make([]hostplugin.Result, calls), make([]error, calls)
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() { results[i], errs[i] = b.Call(t.Context(), number(float32(i))) })
	}
	callers.Wait()
	t.Cleanup(func() {
		for _, r := range results {
			r.Close()
		}
	})
	return results, errs
}

// TestBatchesAnswerEach: each of many callers gets its own row.
func TestBatchesAnswerEach(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	for name, o := range map[string]hostplugin.BatchOptions{
		"usual":   {},
		"waiting": {Max: 16, Wait: time.Millisecond, Batches: 4},
		"single":  {Max: 1, Batches: 8},
		"one":     {Max: 64, Batches: 1},
	} {
		o.Kw = hostplugin.Kw{"scale": 3}
		b := batch(t, fn(t, run, "predict"), o)
		const callers, each = 64, 10
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for j := range each {
					if err := batchOne(t.Context(), b, float32(1000*i+j)); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		all.Wait()
		s := b.Stats()
		if s.Calls != callers*each || s.Batches < callers*each/64 || name != "single" && s.Batches > callers*each/2 || s.Failed+s.GaveUp != 0 || s.Waiting != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Ran < 2*time.Millisecond*time.Duration(s.Batches) || s.Queued <= 0 {
			t.Errorf("%s: queued for %v, ran for %v", name, s.Queued, s.Ran)
		}
	}
	run.NoLeases(t)
}

func batchOne(ctx context.Context, b *hostplugin.Batch, n float32) error {
	r, err := b.Call(ctx, number(n))
	if err != nil {
		return err
	}
	row, err := core.Slice[float32](r.View())
	if err != nil {
		return err
	}
	if want := []float32{3 * n, 3 * n, 3 * n, 3 * n}; !reflect.DeepEqual(row, want) {
		err = fmt.Errorf("%v, want %v", row, want)
	}
	return errors.Join(err, r.Close())
}

// TestBatchesDivideTrees: each caller gets its share of all that the function returns.
func TestBatchesDivideTrees(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	results, errs := inOneBatch(t, batch(t, fn(t, run, "tree"), hostplugin.BatchOptions{Max: 5, Wait: long}), 5)
	for i, r := range results {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		var got struct {
			A     *core.View `python:"a"`
			Items struct {
				N   int        `python:"n"`
				Row *core.View `python:"row"`
			} `python:"items"`
			Pair  []*core.View `python:"pair"`
			Named struct {
				First  *core.View `python:"first"`
				Second string     `python:"second"`
			} `python:"named"`
			Box map[string]any `python:"box"`
		}
		if err := r.Decode(&got); err != nil {
			t.Fatal(err)
		}
		x := float32(i)
		for v, want := range map[*core.View]float32{got.A: x + 1, got.Items.Row: x, got.Pair[0]: 4 * x, got.Named.First: x} {
			if has := slice[float32](t, v); has[0] != want || len(has) != v.Len() {
				t.Errorf("caller %d got %v, want %v", i, has, want)
			}
		}
		if got.Items.N != i || got.Pair[1] != nil || got.Named.Second != fmt.Sprintf("%d.0", i) || len(got.Box) != 2 || len(r.Views()) != 5 {
			t.Errorf("caller %d got %+v with %d arrays", i, got, len(r.Views()))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := core.Slice[float32](got.A); !errors.Is(err, core.ErrClosed) {
			t.Errorf("a view of a closed result: %v", err)
		}
	}
	run.NoLeases(t)
	results, errs = inOneBatch(t, batch(t, fn(t, run, "nothing"), hostplugin.BatchOptions{Max: 2, Wait: long}), 2)
	for i, r := range results {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if v, err := r.Value(); v != nil || err != nil {
			t.Errorf("None came as %v, %v", v, err)
		}
	}
}

// TestBatchesCopyNothing: the function works on the rows that the callers have filled, and they on what it has made.
func TestBatchesCopyNothing(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	b := batch(t, fn(t, run, "addr"), hostplugin.BatchOptions{Max: 4, Wait: long})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			var here uintptr
			r, err := b.Call(t.Context(), func(row *core.View) error {
				here = row.Addr()
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			var there [2]int
			if err := errors.Join(r.Decode(&there), r.Close()); err != nil || there[1] != 4 {
				t.Errorf("a batch of %d rows: %v", there[1], err)
			}
			if mine, its := harness.FilePlace(t, os.Getpid(), here), harness.FilePlace(t, run.PID(t), uintptr(there[0])); mine != its {
				t.Errorf("the caller filled %v, the function saw %v", mine, its)
			}
		})
	}
	callers.Wait()
	f := fn(t, run, "big")
	large, err := f.Batch(hostplugin.BatchOptions{DType: core.Float32, Shape: []int{1 << 15}, Max: 2, Wait: long})
	if err != nil {
		t.Fatal(err)
	}
	results, errs := inOneBatch(t, large, 2)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	call(t, fn(t, run, "alter"), 7)
	for _, r := range results {
		if x := slice[float32](t, r.View()); x[0] != 7 || x[len(x)-1] != 7 || r.View().Copied() {
			t.Errorf("after the program has altered its array, a caller sees %v (%v)", x[0], r.View().Reason())
		}
	}
	low, high := min(results[0].View().Addr(), results[1].View().Addr()), max(results[0].View().Addr(), results[1].View().Addr())
	if high-low != 4<<15 {
		t.Errorf("the callers' rows are %d bytes apart, not next to each other in one array", high-low)
	}
	if err := large.Close(); err != nil {
		t.Error(err)
	}
}

// TestBatchesRefuseWhatHasNoRows: an error says how many rows there should be, and where.
func TestBatchesRefuseWhatHasNoRows(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	for which, says := range map[string]string{
		"list":   "a list of 4 items for a batch of 3 rows",
		"array":  "an array of the shape [2 4] for a batch of 3 rows",
		"deep":   `result["a"][1]: a list of 2 items for a batch of 3 rows`,
		"field":  `result.second: a list of 1 items for a batch of 3 rows`,
		"scalar": "int has no rows; expected an array or a list of 3",
		"set":    "set has no rows",
		"text":   "str has no rows",
		"axes":   "an array without axes for a batch of 3 rows",
	} {
		b := batch(t, fn(t, run, "wrong"), hostplugin.BatchOptions{Max: 3, Wait: long, Kw: hostplugin.Kw{"which": which}})
		_, errs := inOneBatch(t, b, 3)
		for _, err := range errs {
			wantCategory(t, err, core.ErrUnsupported)
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", which, err, says)
			}
		}
		if s := b.Stats(); s.Failed != 1 || s.Batches != 1 {
			t.Errorf("%s: %+v", which, s)
		}
	}
	_, errs := inOneBatch(t, batch(t, fn(t, run, "fails"), hostplugin.BatchOptions{Max: 3, Wait: long}), 3)
	for _, err := range errs {
		if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Message != "3 rows" {
			t.Errorf("a caller of a function that raises got %v", err)
		}
	}
	run.NoLeases(t)
	f := fn(t, run, "fails")
	for _, o := range []hostplugin.BatchOptions{{DType: core.Int8, Max: -1}, {DType: core.Int8, Wait: -1}, {DType: core.Int8, Batches: -1}} {
		_, err := f.Batch(o)
		wantCategory(t, err, core.ErrConfig)
	}
	packed, err := core.ParseDType("int4")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []hostplugin.BatchOptions{{DType: core.Int8, Shape: []int{-1}}, {DType: packed, Shape: []int{3}}} {
		_, err := f.Batch(o)
		wantCategory(t, err, core.ErrLayout)
	}
	_, err = f.Batch(hostplugin.BatchOptions{})
	wantCategory(t, err, core.ErrDType)
}
