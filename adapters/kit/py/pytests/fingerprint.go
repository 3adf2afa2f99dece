package main

import (
	"runtime"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// marked has a class whose objects can be told apart in some ways.
var marked = []string{
	"class A:",
	"    flag, other = True, False",
	"    number, numbers, text = 3, (1, -2, 1 << 47), 'x'",
	"    @property",
	"    def part(self): return self",
	"    def method(self): return self.flag",
	"    @property",
	"    def bad(self): raise ValueError('bad')",
	"class B(A): pass",
	"a, large, mixed = A(), A(), A()",
	"large.number = 1 << 64",
	"mixed.numbers = (1, 'x')",
	"holder = {'it': a}",
}

// holder is a step to what is under the key "it" of a dict, which changes in the tests.
func (p *python) holder() (base py.Object, steps []py.Step) {
	base = p.eval("holder")
	return base, []py.Step{{Kind: py.StepKey, Class: p.Type(base), Key: p.must(p.NewKey("it"))}}
}

// watch watches what is in the holder, which must be possible.
func (p *python) watch(t *testing.T, marks py.Marks) *py.Watch {
	t.Helper()
	base, steps := p.holder()
	w, ok, err := p.Watch(base, steps, &marks, p.eval("holder['it']"))
	if !ok || err != nil {
		t.Fatalf("Watch = %v, %v", ok, err)
	}
	return w
}

func (l *library) testFingerprint(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		class := p.eval("A")
		for name, marks := range map[string]py.Marks{
			"an attribute": {Class: class, Attributes: []string{"other", "flag"}},
			"a method":     {Class: class, Methods: []string{"method"}},
			"numbers":      {Class: class, Numbers: []string{"number", "numbers", "part.numbers", "part.flag"}},
			"both":         {Class: class, Itself: true, Attributes: []string{"flag"}, Methods: []string{"method"}},
		} {
			p.exec("a.flag = True", "holder['it'] = a")
			w := p.watch(t, marks)
			if !p.Same(w) {
				t.Errorf("%s: not what it was", name)
			}
			if p.exec("holder['it'] = A()"); p.Same(w) != !marks.Itself {
				t.Errorf("%s: another object is the same: %v", name, marks.Itself)
			}
			for _, other := range []string{"B()", "1", "None", "A"} {
				if p.exec("holder['it'] = " + other); p.Same(w) {
					t.Errorf("%s: %s is what an A was", name, other)
				}
			}
			if p.exec("holder['it'] = a", "a.flag = False"); p.Same(w) {
				t.Errorf("%s: a change went unseen", name)
			}
			if !w.Describes(0, nil, nil, 0) {
				t.Errorf("%s: an array was seen where none was looked for", name)
			}
			p.exec("a.flag = True")
			if w.Drop(p.GIL); p.Same(w) {
				t.Errorf("%s: the same after Drop", name)
			}
		}
	})
}

// testFingerprintOfNumbers: numbers are told apart by their value.
func (l *library) testFingerprintOfNumbers(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		w := p.watch(t, py.Marks{Class: p.eval("A"), Numbers: []string{"number", "part.numbers"}})
		defer w.Drop(p.GIL)
		for change, same := range map[string]bool{
			"a.number, a.numbers = 3, (1, -2, 1 << 47)":    true,
			"a.number, a.numbers = 4, (1, -2, 1 << 47)":    false,
			"a.number, a.numbers = 3, (1, -3, 1 << 47)":    false,
			"a.number, a.numbers = 3, (1, -2)":             false,
			"a.number, a.numbers = 3, (1, -2, 1 << 47, 0)": false,
			"a.number, a.numbers = 3, ()":                  false,
			"a.number, a.numbers = 3, [1, -2, 1 << 47]":    false,
			"a.number, a.numbers = 3, None":                false,
		} {
			if p.exec(change); p.Same(w) != same {
				t.Errorf("after %s: the same: %v, want %v", change, !same, same)
			}
		}
	})
}

// testFingerprintOfDictionary: what is in the dict of an array interface is told apart, and says where the elements lie.
func (l *library) testFingerprintOfDictionary(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		p.exec("a.about = {'shape': (2, 3), 'strides': None, 'typestr': '<f4', 'data': (1 << 40, False), 'version': 3}")
		w := p.watch(t, py.Marks{Class: p.eval("A"), Interface: "about"})
		defer w.Drop(p.GIL)
		if !w.Describes(1<<40, nil, nil, 0) || w.Describes(1<<41, nil, nil, 0) {
			t.Error("it does not say where the elements lie")
		}
		for _, change := range []struct {
			code string
			same bool
		}{
			{"a.about = dict(a.about)", true},
			{"a.about['data'] = (1 << 41, False)", false},
			{"a.about['data'] = (1 << 40, True)", false},
			{"a.about['data'] = (1 << 40, False)", true},
			{"a.about['strides'] = (12, 4)", false},
			{"a.about.update(strides=None, typestr='<i4')", false},
			{"a.about.update(typestr='<f4', stream=1)", false},
			{"del a.about['stream']", true},
			{"a.about['version'] = 2.0", false},
			{"a.about.update(version=3, typestr='a long text')", false},
			{"a.about = None", false},
			{"del a.about", false},
		} {
			if p.exec(change.code); p.Same(w) != change.same {
				t.Errorf("after %s the same: %v", change.code, !change.same)
			}
		}
	})
}

// testFingerprintOfMemory: a word behind a pointer of the object's struct counts, and nothing else that is there.
func (l *library) testFingerprintOfMemory(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		p.exec("holder['it'] = b = bytearray(range(24))")
		pointer := p.must(p.Attr(p.eval("bytearray"), "__basicsize__")) // which ends with two pointers to the bytes, and a count
		size, err := p.Int64(pointer)
		if err != nil {
			t.Fatal(err)
		}
		w := p.watch(t, py.Marks{Class: p.eval("bytearray"), Behind: py.BehindMark{Pointer: uint32(size) - 16, Word: 8}})
		defer w.Drop(p.GIL)
		for _, change := range []struct {
			code string
			same bool
		}{
			{"b[7] = b[16] = 99", true},
			{"b[8] = 99", false},
			{"b[8] = 8", true},
			{"b[15] = 99", false},
			{"holder['it'] = bytearray(range(16))", true},
			{"holder['it'] = bytearray(b'0123456789abcdef')", false},
		} {
			if p.exec(change.code); p.Same(w) != change.same {
				t.Errorf("after %s the same: %v", change.code, !change.same)
			}
		}
	})
}

// testFingerprintRefused: what has no fingerprint is not watched, and leaves no exception behind.
func (l *library) testFingerprintRefused(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		class := p.eval("A")
		for name, tt := range map[string]struct {
			object string
			marks  py.Marks
		}{
			"of a class made from it":   {"B()", py.Marks{Class: class}},
			"an attribute that fails":   {"a", py.Marks{Class: class, Attributes: []string{"flag", "bad"}}},
			"an attribute it lacks":     {"a", py.Marks{Class: class, Attributes: []string{"missing"}}},
			"a method it lacks":         {"a", py.Marks{Class: class, Methods: []string{"missing"}}},
			"an attribute of no number": {"a", py.Marks{Class: class, Numbers: []string{"text"}}},
			"one too large":             {"large", py.Marks{Class: class, Numbers: []string{"number"}}},
			"a tuple of other things":   {"mixed", py.Marks{Class: class, Numbers: []string{"numbers"}}},
			"a part it lacks":           {"a", py.Marks{Class: class, Numbers: []string{"part.missing"}}},
			"no method":                 {"a", py.Marks{Class: class, Methods: []string{"flag"}}},
		} {
			p.exec("holder['it'] = " + tt.object)
			base, steps := p.holder()
			if _, ok, err := p.Watch(base, steps, &tt.marks, p.eval("holder['it']")); ok || err != nil {
				t.Errorf("%s: %v, %v", name, ok, err)
			}
			if _, err := p.Import("sys"); err != nil {
				t.Errorf("%s: afterwards %v", name, err)
			}
		}
		p.exec("holder['it'] = a")
		base, steps := p.holder()
		if _, ok, err := p.Watch(base, steps, &py.Marks{Class: class}, p.eval("large")); ok || err != nil {
			t.Errorf("what the steps do not lead to: %v, %v", ok, err)
		}
	})
}

func (p *python) text(o py.Object) string {
	text, err := p.Text(o)
	if err != nil {
		p.Error(err)
	}
	return text
}

// watchGlobal takes the fingerprint of the variable "watched".
func watchGlobal(t *testing.T, thread *py.Thread) (w *py.Watch) {
	t.Helper()
	err := thread.Do(func(g *py.GIL) (err error) {
		p := &python{T: t, GIL: g}
		key := p.must(g.NewKey("watched"))
		o := p.global("watched")
		globals := p.must(g.Attr(p.must(g.Main()), "__dict__"))
		steps := []py.Step{{Kind: py.StepKey, Class: g.Type(globals), Key: key}}
		var ok bool
		w, ok, err = g.Watch(0, steps, &py.Marks{Class: g.Type(o), Attributes: []string{"flag"}}, o)
		if !ok {
			t.Error("it is not watched")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// testGlobals looks at what a global variable leads to, from a thread of the caller's.
func (l *library) testGlobals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := l.interp.Thread()
	var w *py.Watch
	references := func() (n int64) {
		l.do(t, func(p *python) { n = p.references(p.global("watched")) })
		return n
	}
	set := func(value string) {
		t.Helper()
		l.do(t, func(p *python) {
			p.exec(marked...)
			if err := p.setattr(p.must(p.Main()), "watched", p.eval(value)); err != nil {
				t.Error(err)
			}
		})
	}
	same := func() bool {
		checks := []py.Check{{Watch: w}, {Watch: w}}
		thread.Check(checks)
		if checks[0].Same != checks[1].Same {
			t.Error("one watch gave two answers")
		}
		return checks[0].Same
	}
	set("a")
	before := references()
	w = watchGlobal(t, thread)
	for range 1000 {
		if !same() {
			t.Fatal("the variable is not what it was")
		}
	}
	if after := references(); after != before {
		t.Errorf("%d references, want %d", after, before)
	}
	for _, value := range []string{"B()", "None"} {
		if set(value); same() {
			t.Errorf("%s is what it was", value)
		}
	}
	l.do(t, func(p *python) {
		_, err := p.Call(p.builtin("delattr"), []py.Object{p.must(p.Main()), p.must(p.NewStr("watched"))}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	if same() {
		t.Error("what is not there is what it was")
	}
	l.do(t, func(p *python) { w.Drop(p.GIL) }) // and no exception is left behind
}

func (p *python) global(name string) py.Object { return p.must(p.Attr(p.must(p.Main()), name)) }
