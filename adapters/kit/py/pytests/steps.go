package main

import (
	"runtime"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// stepping makes what testSteps follows.
var stepping = []string{
	"import types",
	"ran = []",
	"class Plain: pass",
	"class Loud(Plain):",
	"    def __getattr__(self, name): ran.append(name); raise AttributeError(name)",
	"class Hidden(Plain):",
	"    @property",
	"    def x(self): ran.append('x'); return self.__dict__['x']",
	"class Keeper(dict):",
	"    def __getitem__(self, key): ran.append(key); return 1",
	"m = types.ModuleType('m'); m.x = 'module'",
	"plain, loud, hidden = Plain(), Loud(), Hidden()",
	"plain.x, loud.x, hidden.__dict__['x'] = 'plain', 'loud', 'hidden'",
	"class Slots: __slots__ = ('y', 'x', '__own')",
	"class More(Slots):",
	"    __slots__ = ('z', '__dict__')",
	"    def __getattr__(self, name): ran.append(name)",
	"slots, more = Slots(), More()",
	"slots.x, more.x, more.z, more.w = 'slot', 'slot', 'another', 'own'",
	"import collections",
	"class Pair(collections.namedtuple('Pair', 'w x')):",
	"    __slots__ = ()",
	"    def __getitem__(self, key): ran.append(key)",
	"pair = Pair('zero', 'named')",
	"beside = Slots(); beside.x, beside.y = [plain, 'other'], plain",
	"class Registry: pass",
	"r = Registry(); r.first, r.second = {'x': 'first'}, {'x': 'second', 'y': 'other'}",
	"own = Registry(); own.x, own.first, own.second = 'own', {'x': 'first'}, {'x': 'item'}",
	"d, s, u = {'x': 'dict', 3: 'three'}, ['zero', 'one'], ('zero', 'one')",
	"q = collections.deque(s)",
}

// testSteps follows each kind of step to what it leads to, sees when it leads elsewhere, and runs no code of the
// program's.
func (l *library) testSteps(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(stepping...)
		registries := []string{"first", "second"}
		for name, tt := range map[string]struct {
			object, want string
			step         py.Step
			change       string // after which the step leads elsewhere
		}{
			"an attribute":         {"plain", "plain", py.Step{Kind: py.StepAttribute}, "del plain.x"},
			"with a hook":          {"loud", "loud", py.Step{Kind: py.StepAttribute}, "del loud.x"},
			"a property":           {"hidden", "", py.Step{Kind: py.StepAttribute}, ""},
			"of a changed class":   {"plain", "plain", py.Step{Kind: py.StepAttribute}, "Plain.x = property(lambda self: ran.append(1))"},
			"a slot":               {"slots", "slot", py.Step{Kind: py.StepAttribute}, "del slots.x"},
			"a slot without value": {"slots", "", py.Step{Kind: py.StepAttribute, Key: p.must(p.NewKey("y"))}, ""},
			"a slot of a base":     {"more", "slot", py.Step{Kind: py.StepAttribute}, "More.x = property(lambda self: ran.append(1))"},
			"beside slots":         {"more", "own", py.Step{Kind: py.StepAttribute, Key: p.must(p.NewKey("w"))}, "del more.w"},
			"a named tuple":        {"pair", "named", py.Step{Kind: py.StepAttribute}, "Pair.x = property(lambda self: ran.append(1))"},
			"a module":             {"m", "module", py.Step{Kind: py.StepGlobal}, "del m.x"},
			"a dict":               {"d", "dict", py.Step{Kind: py.StepKey}, "del d['x']"},
			"a dict's number":      {"d", "three", py.Step{Kind: py.StepKey, Key: p.must(p.NewInt(3))}, "d.clear()"},
			"a list":               {"s", "one", py.Step{Kind: py.StepIndex, Index: 1}, "s.pop()"},
			"a list from its end":  {"s", "zero", py.Step{Kind: py.StepIndex, Index: -2}, "s.pop()"},
			"too far":              {"s", "", py.Step{Kind: py.StepIndex, Index: 2}, ""},
			"a tuple":              {"u", "one", py.Step{Kind: py.StepIndex, Index: -1}, ""},
			"a deque":              {"q", "one", py.Step{Kind: py.StepIndex, Index: -1}, "q.pop()"},
			"a registry":           {"r", "first", py.Step{Kind: py.StepRegistered, Registries: registries}, "r.first.clear(); r.second.clear()"},
			"a later registry": {"r", "other", py.Step{
				Kind: py.StepRegistered, Registries: registries, Key: p.must(p.NewKey("y")),
			}, "r.y = 'own'"},
			"an item of a registry": {"own", "item", py.Step{
				Kind: py.StepRegisteredItem, Registries: registries[1:],
			}, "own.second['x'] = 'another'"},
		} {
			o := p.eval(tt.object)
			tt.step.Class = p.Type(o)
			if tt.step.Key == 0 {
				tt.step.Key = p.must(p.NewKey("x"))
			}
			got, ok := p.Follow(o, tt.step)
			if ok != (tt.want != "") || ok && p.text(got) != tt.want {
				t.Errorf("%s leads to %v, want %q", name, ok, tt.want)
			}
			if tt.change == "" {
				continue
			}
			p.exec(tt.change)
			if again, ok := p.Follow(o, tt.step); ok && again == got {
				t.Errorf("%s leads there after %s", name, tt.change)
			}
			p.exec("for c in Plain, More, Pair:", "    if 'x' in c.__dict__: del c.x", "slots.x, more.w = 'slot', 'own'", "r.__dict__.pop('y', None)",
				"plain.x, loud.x, m.x = 'plain', 'loud', 'module'", "d.update({'x': 'dict', 3: 'three'})",
				"s[:] = ['zero', 'one']", "r.first['x'], r.second['y'] = 'first', 'other'")
		}
		if n, err := p.Len(p.eval("ran")); err != nil || n != 0 {
			t.Errorf("code of the program's has run %d times, %v", n, err)
		}
		if _, ok := p.Follow(p.eval("Keeper(x=2)"), py.Step{Kind: py.StepKey, Class: p.Type(p.eval("d")), Key: p.must(p.NewKey("x"))}); ok {
			t.Error("a class made from dict was taken for a dict")
		}
	})
}

// testFields tells the attributes that objects have without a __dict__.
func (l *library) testFields(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(stepping...)
		for object, want := range map[string]string{
			"slots": "'_Slots__own','x','y'", "Slots": "", "More()": "'_Slots__own','x','y','z'", "plain": "", "Pair(1, 2)": "'w','x'", "d": "", "1": "",
			"range(3)": "", "types.MethodType(print, 1)": "'__self__','__func__'", "(lambda: 0)": "'__closure__','__defaults__','__kwdefaults__'",
			"__import__('functools').partial(print)": "'func','args','keywords'", "(i for i in ())": "'gi_yieldfrom'", "print": "",
		} {
			if got := p.texts(p.Fields(p.eval(object))...); got != want {
				t.Errorf("the fields of %s are %q, want %q", object, got, want)
			}
		}
	})
}

// testBeside goes on from an object as long as it has what is expected.
func (l *library) testBeside(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(stepping...)
		o, plain := p.eval("beside"), p.eval("plain")
		follow := func(kind py.StepKind, key string, i int, expected py.Object) bool {
			got, ok := p.Follow(o, py.Step{Kind: kind, Class: p.Type(o), Key: p.must(p.NewKey(key)), Index: i, Expected: expected})
			if ok && kind == py.StepBeside && got != o {
				t.Errorf("%s leads away", key)
			}
			return ok
		}
		if !follow(py.StepBeside, "x", 0, plain) || !follow(py.StepBeside, "y", -1, plain) || !follow(py.StepGetter, "y", 0, 0) {
			t.Error("what is expected is not there")
		}
		if follow(py.StepBeside, "x", 1, plain) || follow(py.StepBeside, "x", 2, plain) || follow(py.StepBeside, "x", -1, plain) || follow(py.StepBeside, "y", 0, plain) {
			t.Error("something else passes for what is expected")
		}
		o = p.eval("hidden")
		if follow(py.StepGetter, "x", 0, 0) || follow(py.StepBeside, "x", -1, plain) {
			t.Error("a property passes for a getter in C")
		}
		if n, err := p.Len(p.eval("ran")); err != nil || n != 0 {
			t.Errorf("code of the program's has run %d times, %v", n, err)
		}
	})
}

// testSteady sees when a thread sets or deletes an attribute and something of that gives the GIL away, and when it runs what uses a name.
func (l *library) testSteady(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(
			"import threading",
			"here, leave = threading.Semaphore(0), threading.Semaphore(0)",
			"def stay(): here.release(); leave.acquire()",
			"class Last:",
			"    def __del__(self): stay()",
			"class Holder: pass",
			"def replaces(): stay()",
			"def computes(): replaces()",
			"def work():",
			"    stay()",
			"    h = Holder(); h.x = h.y = Last()",
			"    h.x = None; del h.y",
			"    h.x = Last()",
			"    h.x = None",
			"    computes()",
			"threading.Thread(target=work, daemon=True).start()",
		)
		name, other := p.must(p.Interned("replaces")), p.must(p.Interned("replaced"))
		for i, want := range []struct{ steady, otherwise bool }{{true, true}, {false, false}, {false, false}, {false, true}} {
			p.exec("here.acquire()")
			if steady, otherwise := p.Steady(name), p.Steady(other); steady != want.steady || otherwise != want.otherwise {
				t.Errorf("%d: steady are %v and, whatever replaces, %v; want %v", i, steady, otherwise, want)
			}
			p.exec("leave.release()")
		}
	})
}

// watchesInTurn gives watches of what testStepsInTurn makes.
func (l *library) watchesInTurn(t *testing.T) (checks []py.Check) {
	t.Helper()
	l.do(t, func(p *python) {
		p.exec(stepping...)
		p.exec("import __main__ as main", "main.r, main.own = r, own")
		base := p.eval("main.__dict__")
		for _, to := range []struct {
			first, key string
			kind       py.StepKind
			registries []string
			want       string // what the step leads to, and the next one would not
		}{
			{"r", "x", py.StepRegistered, []string{"first"}, "first"},
			{"r", "x", py.StepRegistered, []string{"second"}, "second"},
			{"r", "y", py.StepRegistered, []string{"second"}, "other"},
			{"own", "x", py.StepRegistered, []string{"second"}, "own"},
			{"own", "x", py.StepRegisteredItem, []string{"second"}, "item"},
			{"r", "x", py.StepRegisteredItem, []string{"second"}, "second"},
		} {
			steps := []py.Step{
				{Kind: py.StepKey, Class: p.Type(base), Key: p.must(p.NewKey(to.first))},
				{Kind: to.kind, Class: p.eval("Registry"), Key: p.must(p.NewKey(to.key)), Registries: to.registries},
			}
			w, ok, err := p.Watch(base, steps, &py.Marks{Class: p.eval("str"), Itself: true}, p.eval("'"+to.want+"'"))
			if !ok || err != nil {
				t.Fatalf("%v: Watch = %v, %v", to, ok, err)
			}
			checks = append(checks, py.Check{Watch: w})
		}
	})
	return checks
}

// testStepsInTurn: what one watch has found on the way to its object serves the next one only if that asks the same
// object for the same, and is given back.
func (l *library) testStepsInTurn(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := l.interp.Thread()
	references := func() (n int64) {
		l.do(t, func(p *python) {
			p.exec("import __main__ as main")
			for _, dict := range []string{"r.__dict__", "r.first", "r.second", "own.second"} {
				n += p.references(p.eval("main." + dict))
			}
		})
		return n
	}
	checks := l.watchesInTurn(t)
	same := []bool{true, true, true, true, true, true}
	check := func() {
		t.Helper()
		thread.Check(checks)
		for i, c := range checks {
			if c.Same != same[i] {
				t.Errorf("watch %d: the same: %v", i, c.Same)
			}
		}
	}
	if err := thread.Do(func(*py.GIL) error { return nil }); err != nil { // a thread checks once it has entered Python
		t.Fatal(err)
	}
	before := references()
	check()
	check()
	if after := references(); after != before {
		t.Errorf("%d references, want %d", after, before)
	}
	l.do(t, func(p *python) {
		p.exec("import __main__ as main", "main.r.second = {'x': 'none', 'y': 'other'}", "main.own.x = 'no more'")
	})
	same[1], same[3], same[5] = false, false, false
	check()
	l.do(t, func(p *python) {
		p.exec("import __main__ as main", "del main.r, main.own")
		for _, c := range checks {
			c.Watch.Drop(p.GIL)
		}
	})
}
