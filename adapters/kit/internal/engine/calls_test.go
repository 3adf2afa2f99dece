package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Each name in a list leads to what it was listed for.
func TestLocalsListing(t *testing.T) {
	t.Parallel()
	const script = triggers + `
import types
other = types.ModuleType("other")
exec("""
def twice(then, x):
    here = x
    then()
""", other.__dict__)
plain = number(0)
class Trainer:
    def fit(self, then):
        batch, _hidden, text = number(1), number(99), "no array"
        then()
def fit(then):
    batch = number(2)
    then()
def twice(then, x):
    there = x
    then()
def recursive(n, then):
    level = number(n)
    recursive(n - 1, then) if n > 5 else then()
def pause():
    waiting = number(7)
    said("ready")
    events["end"].wait()
def main(weights):
    fit(lambda: Trainer().fit(lambda: twice(lambda: other.twice(lambda: recursive(6, pause), number(4)), number(3))))
def worker():
    unlisted = number(9)
    events["end"].wait()
threading.Thread(target=worker, daemon=True).start()
main(number(10))
`
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, script, programtest.Options{Python: python})
		p.Said(t, "ready")
		want := map[string]float64{
			"plain": 0, "Trainer.fit().batch": 1, "twice().here": 4, "twice().x": 4, "recursive().level": 5, "pause().waiting": 7,
			"main().weights": 10, "__main__:fit().batch": 2, "__main__:twice().there": 3, "__main__:twice().x": 3,
		}
		if info, err := p.Info(t.Context()); err != nil {
			t.Error(err)
		} else if old := slices.ContainsFunc([]string{"3.8.", "3.9.", "3.10."}, func(v string) bool {
			return strings.HasPrefix(info.Interpreter, "CPython "+v)
		}); old { // whose code has no qualified names
			for _, name := range []string{"Trainer.fit().batch", "__main__:fit().batch", "__main__:twice().there", "__main__:twice().x"} {
				delete(want, name)
			}
			want["fit().batch"] = 1
		}
		for e, err := range p.Arrays(t.Context()) {
			if err != nil || e.Err != nil {
				t.Fatal(err, e.Err)
			}
			value, ok := want[e.Name]
			if !ok {
				t.Errorf("%s is listed", e.Name)
				continue
			}
			delete(want, e.Name)
			if got := first(t, p, e.Name); got != value {
				t.Errorf("%s begins with %v, want %v", e.Name, got, value)
			}
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
		trigger(t, p, "end")
		p.Finish(t)
	})
}

// An unknown name's error says where it was looked for, and which variable of a function was meant.
func TestLocalsSuggested(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, triggers+`
def train():
    loss, learning_rate, weights = number(1), 0.1, number(2)
    said("ready")
    events["end"].wait()
weight = number(3)
train()
`, programtest.Options{})
	p.Said(t, "ready")
	const nowhere = "the program has no global variable, has published nothing, and runs no function with a variable, of that name"
	for name, texts := range map[string][]string{
		"loss":         {"a function that runs has such a variable", `did you mean "train().loss"?`},
		"weights.T":    {"a function that runs has such a variable", `did you mean "train().weights"?`},
		"learningrate": {nowhere, `did you mean "train().learning_rate"?`},
		"wieght":       {nowhere, `did you mean "weight"?`},
		"unlike":       {nowhere, "the variables of (", "train())"},
	} {
		_, err := p.View(t, name, contract.Request{NoWait: true})
		wants(t, name, err, core.ErrNotFound, texts...)
	}
	trigger(t, p, "end")
	p.Finish(t)
	_, err := p.View(t, "loss", contract.Request{})
	wants(t, "after the end", err, core.ErrNotFound, nowhere)
}

// What finds out how frames are at the start leaves no object behind, nor garbage.
func TestProbeOfFramesIsGone(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, `
import gc, types
gc.disable()
left = [o for o in gc.get_objects() if type(o) in (types.FunctionType, types.GeneratorType) and o.__qualname__.startswith("outer")]
assert not left, left
`, programtest.Options{Python: python})
		p.Finish(t)
	})
}
