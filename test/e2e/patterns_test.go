package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// search gives what a pattern means.
func search(t *testing.T, run *harness.Run, pattern string, limit int) contract.Found {
	t.Helper()
	searcher, ok := run.Producer().(contract.Searcher)
	if !ok {
		t.Fatal("the program cannot be searched")
	}
	found, err := searcher.Search(t.Context(), contract.Search{Pattern: pattern, Limit: limit})
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return found
}

func wantNames(t *testing.T, run *harness.Run, pattern string, want ...string) {
	t.Helper()
	got, err := run.Names(t.Context(), pattern)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s means %v, %v; want %v", pattern, got, err, want)
	}
	for _, name := range got {
		v, err := run.Session.View(t.Context(), name)
		if err != nil {
			t.Errorf("the name %s, which %s means: %v", name, pattern, err)
			continue
		}
		closed(t, v)
	}
}

// TestPatterns finds arrays in what Python's own containers, and classes of the program's, have.
func TestPatterns(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import collections, dataclasses, typing
import numpy as np, ndbridge, remote
a = lambda: np.ones(3)
@dataclasses.dataclass
class Layer:
    weight: np.ndarray
    bias: typing.Any = None
    kind = a() # of the class
class Slots:
    __slots__ = ("x", "y", "unset", "_own")
    def __init__(self, y=None): self.x, self.y, self._own = a(), y, a()
class More(Slots):
    __slots__ = ("z", "__dict__")
slots = More([Slots()])
slots.w = a()
Pair = collections.namedtuple("Pair", "left right")
pair = Pair(Slots(), [a()])
layers = [Layer(a(), a()), Layer(a())]
state = collections.OrderedDict([("0.weight", a()), ("0.bias", a()), (7, a()), ("n", 3), ((1, 2), a()), ((3.5, "a"), a()),
    (("enc", "w"), {"v": a()}), (("enc",), a()), (("enc", ("w",)), a())])
recent = collections.deque([a(), [a()]], maxlen=2)
class Deque(collections.deque): pass
own = Deque([a()])
point = collections.namedtuple("Point", "x y")(a(), [a()])
Holder = type("Holder", (), {})
model = Holder()
model.enc, model.dec, model._own = Holder(), Holder(), a()
model.enc.weight, model.dec.weight = a(), a()
model.dec.tied = _ = model.enc.weight
model.me = [model]
tree = {"params": {"dense": {"kernel": a(), "bias": a()}, "steps": (a(), [a()])}}
ndbridge.publish("shown", a())
def main(x):
    y = {"z": [x]}
    remote.serve()
main(a())
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1")
	wantNames(t, run, "layers[*].*", "layers[0].bias", "layers[0].weight", "layers[1].weight")
	wantNames(t, run, `state["*"]`, `state["0.bias"]`, `state["0.weight"]`)
	wantNames(t, run, "state[*]", `state["0.bias"]`, `state["0.weight"]`, `state["enc",]`, "state[1, 2]", "state[7]")
	wantNames(t, run, `state[("enc", "w")].**`, `state["enc", "w"]["v"]`)
	wantNames(t, run, `state["*.weight"][1:]`, `state["0.weight"][1:]`)
	wantNames(t, run, "model.*.weight", "model.dec.weight", "model.enc.weight")
	wantNames(t, run, "model.*")
	wantNames(t, run, "model._*", "model._own")
	wantNames(t, run, "model.**", "model._own", "model.dec.tied", "model.dec.weight", "model.enc.weight")
	wantNames(t, run, "model.**.weight", "model.dec.weight", "model.enc.weight")
	wantNames(t, run, "recent.**", "recent[0]", "recent[1][0]")
	wantNames(t, run, "own.**")
	wantNames(t, run, "point[*]", "point[0]")
	wantNames(t, run, "point.*", "point.x")
	wantNames(t, run, "slots.*", "slots.w", "slots.x")
	wantNames(t, run, "slots.**", "slots._own", "slots.w", "slots.x", "slots.y[0]._own", "slots.y[0].x")
	wantNames(t, run, "pair.**", "pair.left._own", "pair.left.x", "pair.right[0]")
	wantNames(t, run, `tree["params"].**`, `tree["params"]["dense"]["bias"]`, `tree["params"]["dense"]["kernel"]`,
		`tree["params"]["steps"][0]`, `tree["params"]["steps"][1][0]`)
	wantNames(t, run, "main().**", "main().x", `main().y["z"][0]`)
	wantNames(t, run, "sh*", "shown")
	wantNames(t, run, "gone.*")
	if _, err := run.Names(t.Context(), "x["); !errors.Is(err, core.ErrConfig) {
		t.Errorf("no pattern: %v", err)
	}

	every := search(t, run, "**", 0)
	i := slices.IndexFunc(every.Entries, func(e contract.Entry) bool { return e.Name == "model.dec.tied" })
	if every.Partial || every.More != 0 || i < 0 || !slices.Equal(every.Entries[i].Also[:2], []string{"_", "model.enc.weight"}) {
		t.Errorf("an array with three names: %+v, more %d, partial %v", every.Entries, every.More, every.Partial)
	}
	if few := search(t, run, "**", 4); len(few.Entries) != 4 || few.More != len(every.Entries)-4 {
		t.Errorf("of %d arrays, %d were told, and %d more", len(every.Entries), len(few.Entries), few.More)
	}

	harness.Eval[any](t, run.Remote, "globals().update(many={i: a() for i in range(3000)}, flat={str(i): i for i in range(200000)})")
	if many, err := run.Names(t.Context(), "many[*]"); err != nil || len(many) != 3000 { // in more than one turn
		t.Errorf("%d of 3000 arrays, %v", len(many), err)
	}
	wantNames(t, run, `flat["*"]`)

	run.Remote.Exec(t, `
deep, chain = a(), Holder()
for _ in range(200): deep = [deep]
near = a()
for _ in range(64): near = [near]
at = chain
for _ in range(200): at.array, at.next = a(), Holder(); at = at.next`)
	wantNames(t, run, "deep.**") // what has more than 64 steps has no name
	wantNames(t, run, "near.**", "near"+strings.Repeat("[0]", 64))
	if of, err := run.Names(t.Context(), "chain.**"); err != nil || len(of) != 64 {
		t.Errorf("%d names of a chain, %v", len(of), err)
	}

	everReplaced(t, run)

	set, err := run.Group("shown", `state["*"]`, "model.**.weight", "model.enc.weight")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []string
	for name, v := range set.Views() {
		if all = append(all, name); first(t, v) != 1 || set.View(name) != v {
			t.Errorf("%s is not what it should be", name)
		}
	}
	if text := strings.Join(all, " "); text != `shown state["0.bias"] state["0.weight"] model.dec.weight model.enc.weight` {
		t.Errorf("the group has %s", text)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	none, err := run.Group("gone.*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Refresh(t.Context()); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("a pattern that means nothing: %v", err)
	}
	run.NoLeases(t)
}

// everReplaced searches what a thread of the program replaces all the while, as a training of JAX does with its state: what is made
// lies where something else has just been.
func everReplaced(t *testing.T, run *harness.Run) {
	t.Helper()
	run.Remote.Exec(t, `
import sys, threading
def fresh(): return {i: {"weight": a(), "bias": [a()]} for i in range(200)}
whole, usual, ended = fresh(), sys.getswitchinterval(), threading.Event()
def replace():
    global whole
    while not ended.is_set(): whole = fresh()
sys.setswitchinterval(1e-4)
trainer = threading.Thread(target=replace)
trainer.start()`)
	for range 5 {
		found := search(t, run, "whole.**", 0)
		got := make(map[string]bool)
		for _, e := range found.Entries {
			if got[e.Name] = true; len(e.Also) > 0 {
				t.Errorf("%s is also %v", e.Name, e.Also)
			}
		}
		if len(got) != 400 || len(found.Entries) != 400 {
			t.Errorf("%d arrays of 400, in %d entries", len(got), len(found.Entries))
		}
	}
	run.Remote.Exec(t, "ended.set(); trainer.join(); sys.setswitchinterval(usual)")
}

// TestPatternsInModels finds parameters, buffers and what state_dict gives, which shares their memory.
func TestPatternsInModels(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import torch, remote
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.scale = torch.ones(2)
        self.pool = nn.MaxPool2d((2, 2))
        self.seen, self.pair = 5, (6, True)
model = nn.Module()
model.seq = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
model.blocks = nn.ModuleList([Block()])
model.heads = nn.ModuleDict({"a": nn.Linear(1, 1, bias=False)})
model.extra = nn.ParameterList([nn.Parameter(torch.ones(3))])
state = model.state_dict()
groups = [{**g, "params": None} for g in torch.optim.SGD(model.parameters(), lr=0.5).param_groups]
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	harness.Eval[int](t, run.Remote, "1")
	wantNames(t, run, "model.seq[*].weight", "model.seq[0].weight", "model.seq[2].weight")
	wantNames(t, run, `model.heads["*"].*`, `model.heads["a"].weight`)
	wantNames(t, run, "model.extra[*]", "model.extra[0]")
	wantNames(t, run, "model.seq.*.bias", "model.seq[0].bias", "model.seq[2].bias")
	wantNames(t, run, "model.blocks.0.conv.*", "model.blocks[0].conv.bias", "model.blocks[0].conv.weight")
	// What PyTorch calls a parameter is its name behind that of the model.
	for _, name := range harness.Eval[[]string](t, run.Remote, "[n for n, _ in model.named_parameters()]") {
		if run.View(t, "model."+name).Framework() != "torch" {
			t.Error(name)
		}
	}
	wantNames(t, run, "model.blocks[*].**", "model.blocks[0].conv.bias", "model.blocks[0].conv.weight", "model.blocks[0].norm.bias",
		"model.blocks[0].norm.num_batches_tracked", "model.blocks[0].norm.running_mean", "model.blocks[0].norm.running_var",
		"model.blocks[0].norm.weight", "model.blocks[0].scale")
	if names, err := run.Names(t.Context(), `state["*"]`); err != nil || len(names) != harness.Eval[int](t, run.Remote, "len(state)") {
		t.Errorf("the state has %v, %v", names, err)
	}
	for _, e := range search(t, run, "**", 0).Entries {
		if e.Err != nil || e.Name == "model.seq[0].weight" && !slices.Equal(e.Also, []string{`state["seq.0.weight"]`}) {
			t.Errorf("%s: %v, also %v", e.Name, e.Err, e.Also)
		}
	}
	// What PyTorch's own modules are made with is no number that somebody follows.
	numbers := numbersOf(t, run, contract.Search{Pattern: "**", Numbers: true})
	if numbers[`groups[0]["lr"]`] != "float 0.5" {
		t.Errorf("no rate of learning in %v", numbers)
	}
	maps.DeleteFunc(numbers, func(name, _ string) bool { return !strings.HasPrefix(name, "model.") })
	if got := fmt.Sprint(numbers); got != "map[model.blocks[0].pair[0]:int 6 model.blocks[0].seen:int 5]" {
		t.Error(got)
	}
}

// TestPatternsRunNoCode: nothing that a search does is noticed by what it looks into.
func TestPatternsRunNoCode(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import collections, numpy as np, remote
hooks = []
def hook(name, result=None):
    def f(self, *args):
        hooks.append((name, args))
        return result() if result else object.__getattribute__(self, args[0])
    return f
def fails(): raise AttributeError("hook")
every = {n: hook(n, fails) for n in ("__getattr__", "__getitem__", "__iter__", "__len__", "__contains__", "__eq__", "__bool__", "__repr__",
    "__array__", "__missing__", "keys", "items", "values", "get", "__dir__", "__del__", "__index__")}
every["__hash__"] = hook("__hash__", lambda: 1)
class Hooked: pass
class Hidden: __getattribute__ = hook("__getattribute__")
class Prop:
    @property
    def x(self): hooks.append("property"); return np.ones(2)
class Meta(type):
    def __getattribute__(cls, name): hooks.append(("meta", name)); return type.__getattribute__(cls, name)
    def __instancecheck__(cls, o): hooks.append("instancecheck"); return True
class OfMeta(metaclass=Meta): pass
class Dict(dict): pass
class List(list): pass
class Array(np.ndarray): pass
class Speaks:
    @property
    def __array_interface__(self): hooks.append("interface"); return np.ones(2).__array_interface__
class Slots: __slots__ = ("x",)
class Pair(collections.namedtuple("Pair", "x")): __slots__ = ()
slots = Slots()
slots.x = np.ones(3)
objects = [Hooked(), Prop(), OfMeta(), Dict(a=np.ones(3)), List([np.ones(3)]), np.ones(3).view(Array), Hidden(), Speaks(), slots, Pair(np.ones(3))]
for o in objects:
    for c in (Hooked, Prop, Dict, List, Array, OfMeta, Slots, Pair):
        for n, f in every.items():
            if type(o) is c: type.__setattr__(c, n, f)
    if hasattr(o, "__dict__"): object.__getattribute__(o, "__dict__")["inner"] = [np.zeros(4)]
class Key(str):
    def __hash__(self): hooks.append("hash of a key"); return str.__hash__(self)
    def __eq__(self, o): hooks.append("== of a key"); return str.__eq__(self, o)
class Number(int):
    def __hash__(self): hooks.append("hash of a number"); return int.__hash__(self)
by_key = {Hooked(): np.ones(1), "k": objects, 1.5: np.ones(1), Key("key"): [np.ones(1)], Number(3): [np.ones(1)]}
keyed = type("Keyed", (), {})()
keyed.__dict__ = {Key("inner"): [np.ones(1)]}
hooks.clear()
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "hooks.clear() or 1")
	for _, pattern := range []string{"**", "objects[*].**", "*", "by_key[*][*]", "objects[*].*", "objects[*].inner", `objects["*"]`, "objects[6].x", "objects[*].x"} {
		search(t, run, pattern, 0)
		if noticed := harness.Eval[string](t, run.Remote, "repr(hooks[:5])"); noticed != "[]" {
			t.Fatalf("%s ran %s", pattern, noticed)
		}
	}
	wantNames(t, run, "objects[*].inner[*]", "objects[0].inner[0]", "objects[1].inner[0]", "objects[2].inner[0]", "objects[3].inner[0]",
		"objects[4].inner[0]", "objects[7].inner[0]")
	wantNames(t, run, "objects[*].x", "objects[8].x", "objects[9].x")
}

// TestNamesOfKeys goes into a dict by objects that have names, whose own comparisons never run, and which a view does not keep.
func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import weakref
import numpy as np, remote
ran = []
class Key:
    def __eq__(self, other): ran.append("eq"); return self is other
    def __hash__(self): ran.append("hash"); return 7
class Layer: pass
layer = Layer()
layer.w, layer.v, other = Key(), Key(), Key()
table = {layer.w: np.full(3, 1.0), layer.v: {"x": np.full(3, 2.0)}, 7: np.full(3, 7.0)}
ran.clear()
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1") // until all is there
	value := func(v *core.View) float64 {
		x, err := core.At[float64](v, 0)
		if err != nil {
			t.Error(err)
		}
		return x
	}
	by, err := run.Source("table[layer.w]")
	if err != nil {
		t.Fatal(err)
	}
	var v *core.View
	refresh := func(changed bool, want float64) {
		t.Helper()
		next, is, err := by.Refresh(t.Context(), v, hostplugin.NoWait())
		if v = next; err != nil || is != changed || value(v) != want {
			t.Errorf("Refresh = %v, %v, %v; want %v, and %v", v, is, err, changed, want)
		}
	}
	refresh(true, 1)
	refresh(false, 1)
	run.Remote.Exec(t, "table[layer.w][0] = 5; ran.clear()")
	refresh(false, 5)
	inner := run.View(t, `table[layer.v]["x"]`)
	if value(inner) != 2 {
		t.Errorf("the other key leads to %v", value(inner))
	}
	run.Remote.Exec(t, "other, layer.w = layer.w, other; table[layer.w] = np.full(4, 3.0); ran.clear()")
	refresh(true, 3)
	if ran := harness.Eval[[]string](t, run.Remote, "ran"); len(ran) > 0 {
		t.Errorf("code of the program's has run: %v", ran)
	}
	run.Remote.Exec(t, "kept = weakref.ref(layer.w); table.clear(); del layer.w; layer.w = other")
	if gone := harness.Eval[bool](t, run.Remote, "kept() is None"); !gone {
		t.Error("a view keeps the key that leads to it")
	}
	if _, _, err = by.Refresh(t.Context(), v, hostplugin.NoWait()); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), "no key that is the object layer.w") {
		t.Errorf("without the key: %v", err)
	}
	for name, says := range map[string]string{
		"ran[layer.w]": "only a dict is looked into", "table[layer.nothing]": "no attribute nothing", "table[7]": "has no key [7]",
	} {
		if _, err := run.Session.View(t.Context(), name, hostplugin.NoWait()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	closed(t, v)
	closed(t, inner)
}
