package e2e

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// numbersScript has numbers of each kind, and traps: what runs notes itself.
const numbersScript = `
import collections, queue
import numpy as np, remote
ran = []
class Trap(float):
    def __float__(self): ran.append("float")
    __int__ = __index__ = __eq__ = __hash__ = __bool__ = __repr__ = __str__ = __add__ = __float__
    def __getattribute__(self, name): ran.append(name)
class Whole(int):
    def __int__(self): ran.append("int")
    __float__ = __index__ = __repr__ = __str__ = __int__
class Lazy:
    def __getattr__(self, name): ran.append(name)
    @property
    def loss(self): ran.append("property"); return 0.5
class Slots:
    __slots__ = ("lr", "unset")
    def __init__(self): self.lr = 0.125
class Trainer: pass
trap, whole, lazy, slots = Trap(1), Whole(2), Lazy(), Slots()
lazy.own = Trap(3)
loss, epoch, flag, nothing, text = 0.5, 3, True, None, "7"
bad, best, worst = float("nan"), float("inf"), float("-inf")
least, most, over, huge = -2**63, 2**63 - 1, 2**63, 10**400
single, array = np.float64(0.25), np.ones(3)
metrics = {"acc": 0.75, "flag": False, "n": 7, ("a", 1): 1.5, "trap": Trap(4), "\\udc80": 2.5, "\udc80": 3.5, ("a", "\udc80"): 4.5}
globals()["metrics['n']"], globals()["\udc80"] = array, array # which nobody can name
pair = collections.namedtuple("Pair", "left right")(1, 2)
many, few = [float(i) for i in range(65)], [float(i) for i in range(64)]
wide = {str(i): i for i in range(65)}
long = list(range(100_000))
trainer = Trainer()
trainer.best, trainer.on, trainer.history, trainer.me = 0.875, True, many, trainer
def counted(rate=0.5, *, bias=1.5):
    steps = 9
    def inner(): return steps
    return inner
inner = counted()
turns, done = queue.SimpleQueue(), queue.SimpleQueue()
def main():
    step, flag, local, missing = 0, True, Trap(5), None
    while turns.get():
        step += 1
        state = {"lr": 0.5 / step}
        done.put(step)
remote.start()
main()
done.put(0)
`

func numbersOf(t *testing.T, run *harness.Run, s contract.Search) map[string]string {
	t.Helper()
	searcher, ok := run.Producer().(contract.Searcher)
	if !ok {
		t.Fatal("the program cannot be searched")
	}
	found, err := searcher.Search(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, n := range found.Numbers {
		all[n.Name] = fmt.Sprintf("%s %v", n.Type(), n.Value)
		if n.Whole {
			all[n.Name] = fmt.Sprintf("int %d", n.Int)
		}
		if n.Whole && n.Value != float64(n.Int) {
			t.Errorf("%s: %v is not near %d", n.Name, n.Value, n.Int)
		}
	}
	return all
}

// TestNumbers finds Python's own numbers with their values, and nothing else, runs nothing of the program's, and follows them.
func TestNumbers(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, numbersScript, harness.Options{})
	run.Remote.Exec(t, "turns.put(1); done.get()")
	every := contract.Search{Pattern: "**", Numbers: true}
	got := numbersOf(t, run, every)
	want := map[string]string{
		"loss": "float 0.5", "epoch": "int 3", "bad": "float NaN", "best": "float +Inf", "worst": "float -Inf",
		"least": fmt.Sprint("int ", math.MinInt64), "most": fmt.Sprint("int ", math.MaxInt64), "slots.lr": "float 0.125", `metrics["\\udc80"]`: "float 2.5",
		`metrics["acc"]`: "float 0.75", `metrics["n"]`: "int 7", `metrics["a", 1]`: "float 1.5", "pair.left": "int 1", "pair.right": "int 2",
		"trainer.best": "float 0.875", "inner.__closure__[0].cell_contents": "int 9", "main().step": "int 1", `main().state["lr"]`: "float 0.5",
	}
	for i := range 64 {
		want[fmt.Sprintf("few[%d]", i)] = fmt.Sprint("float ", i)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	for name, value := range got {
		if want[name] == "" {
			t.Errorf("%s is there, too: %s", name, value)
		}
	}
	if few := numbersOf(t, run, contract.Search{Pattern: "**", Numbers: true, Limit: 5}); len(few) != 5 {
		t.Errorf("a limit of 5: %v", few)
	}
	if plain := numbersOf(t, run, contract.Search{Pattern: "**"}); len(plain) > 0 {
		t.Errorf("nobody has asked for %v", plain)
	}
	for pattern, want := range map[string]string{
		"main().*": "map[main().step:int 1]", `metrics["*"]`: `map[metrics["\\udc80"]:float 2.5 metrics["acc"]:float 0.75 metrics["n"]:int 7]`, "many[*]": "map[]", "many[3]": "map[many[3]:float 3]",
		"tr*": "map[]", "trainer.*": "map[trainer.best:float 0.875]",
	} {
		if got := fmt.Sprint(numbersOf(t, run, contract.Search{Pattern: pattern, Numbers: true})); got != want {
			t.Errorf("%s means %s, want %s", pattern, got, want)
		}
	}
	found := search(t, run, "**", 0)
	if !slices.ContainsFunc(found.Entries, func(e contract.Entry) bool { return e.Name == "single" && e.Layout.Len() == 1 }) {
		t.Errorf("a number of NumPy's is no array: %+v", found.Entries)
	}
	var variables []string
	for e := range run.Arrays(t.Context()) {
		variables = append(variables, e.Name)
	}
	if !slices.Equal(variables, []string{"array", "single"}) {
		t.Errorf("listed are the variables %q", variables)
	}
	followNumbers(t, run)
	if ran := harness.Eval[[]string](t, run.Remote, "ran"); len(ran) > 0 {
		t.Errorf("the program's code ran: %q", ran)
	}
	run.NoLeases(t)
}

// followNumbers reads numbers by name while the program changes them, replaces them by other things, and returns.
func followNumbers(t *testing.T, run *harness.Run) {
	t.Helper()
	names := []string{"loss", "main().step", `main().state["lr"]`, `metrics["acc"]`, "trainer.best", "array", "flag", "trap", "trap.x", "lazy.loss", "lazy.own", "huge", "gone.x", "many[64]", "metrics['acc']", "few.1"}
	read := func() string { return fmt.Sprint(numbersOf(t, run, contract.Search{Names: names})) }
	for i := 2; i < 6; i++ {
		run.Remote.Exec(t, fmt.Sprintf("loss = 1 / %d; metrics['acc'] = %d; trainer.best += 1; turns.put(1); done.get()", i, i))
		want := fmt.Sprintf(`map[few.1:float 1 loss:float %v main().state["lr"]:float %v main().step:int %d many[64]:float 64 metrics["acc"]:int %[4]d metrics['acc']:int %[4]d trainer.best:float %[5]v]`,
			1/float64(i), 0.5/float64(i), i, i, float64(i)-0.125)
		if got := read(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	run.Remote.Exec(t, "loss, trainer.best = array, None; del metrics['acc']; turns.put(0); done.get()")
	if got := read(); got != "map[few.1:float 1 many[64]:float 64]" {
		t.Errorf("after the end: %s", got)
	}
	searcher, ok := run.Producer().(contract.Searcher)
	if !ok {
		t.Fatal("the program cannot be searched")
	}
	if _, err := searcher.Search(t.Context(), contract.Search{Names: []string{"x["}}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("no name: %v", err)
	}
}
