package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestPublishedFunctions: what is published to be called goes before a variable of that name, and is kept until the name is another's.
func TestPublishedFunctions(t *testing.T) {
	script, err := os.ReadFile("testdata/docs/local.py")
	if err != nil {
		t.Fatal(err)
	}
	startedAndAttached(t, func(t *testing.T, attached bool) {
		run := harness.Start(t, string(script), harness.Options{Attached: attached})
		harness.Eval[int](t, run.Remote, "1") // it is published
		gives := func(want float64) {
			t.Helper()
			f := fn(t, run, "predict")
			if got := slice[float64](t, call(t, f, 3).View())[1<<14]; got != want {
				t.Errorf("predict(3) = %v, want %v", got, want)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		first := fn(t, run, "predict")
		gives(6)
		if v := slice[float64](t, run.View(t, "predict.__self__.weights"))[9]; v != 2 {
			t.Errorf("the weights of the model whose method is published are %v", v)
		}
		run.Remote.Exec(t, "publish(5, count=7)")
		gives(15)
		if got := slice[float64](t, call(t, first, 3).View())[0]; got != 6 {
			t.Errorf("a function that was looked up before gives %v", got)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		_, err := run.Session.View(t.Context(), "predict")
		wantCategory(t, err, core.ErrUnsupported)
		if !strings.Contains(err.Error(), "method is not an array") {
			t.Errorf("a view of a function: %v", err)
		}
		cannotFind(t, run, "count", core.ErrUnsupported, "int, which cannot be called")
		for a, err := range run.Arrays(t.Context()) {
			if a.Name == "predict" || err != nil {
				t.Errorf("a function is listed: %+v, %v", a, err)
			}
		}
		run.Remote.Exec(t, "ndbridge.publish('predict', np.full(1 << 15, 1.0))")
		if v := slice[float64](t, run.View(t, "predict"))[9]; v != 1 {
			t.Errorf("the array that was published in a function's place has %v", v)
		}
		cannotFind(t, run, "predict", core.ErrUnsupported, "numpy.ndarray, which cannot be called")
		run.Remote.Exec(t, "publish(4); ndbridge.unpublish('predict')")
		if got := value(t, fn(t, run, "predict"), 3); got != "that of __main__" {
			t.Errorf("after unpublish, predict gives %v", got)
		}
		harness.Eventually(t, harness.StartBound, "no model is kept", func() bool {
			return harness.Eval[bool](t, run.Remote, "not any(living())")
		})
	})
}

// TestPublishRefusesTheRest: what is neither an array nor can be called is refused as before.
func TestPublishRefusesTheRest(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, ndbridge, remote
class Broken:
    def __call__(self): pass
    @property
    def __array_interface__(self): raise ValueError("broken")
def refused(o):
    try: ndbridge.publish("o", o)
    except Exception as e: return type(e).__name__
def put():
    ndbridge.publish("later", lambda: 8)
remote.serve()
`, harness.Options{})
	for o, want := range map[string]string{"[1]": "TypeError", "None": "TypeError", "'text'": "TypeError", "Broken()": "ValueError"} {
		if got := harness.Eval[string](t, run.Remote, "refused("+o+") or 'nothing'"); got != want {
			t.Errorf("publish(%s) raises %s, want %s", o, got, want)
		}
	}
	for _, o := range []string{"Broken", "len", "np.sum", "np.ndarray", "np.float32", "lambda: 1"} {
		if got := harness.Eval[string](t, run.Remote, "refused("+o+") or 'nothing'"); got != "nothing" {
			t.Errorf("publish(%s) raises %s", o, got)
		}
	}
	looked := make(chan any)
	go func() {
		f, err := run.Func(t.Context(), "later")
		if err != nil {
			looked <- err
			return
		}
		looked <- value(t, f)
	}()
	run.Remote.Exec(t, "put()")
	if got := <-looked; got != int64(8) {
		t.Errorf("a function that was waited for gave %v", got)
	}
}
