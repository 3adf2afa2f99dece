package main

import (
	"runtime"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// glances has a class whose objects can be told apart in some ways.
var glances = []string{
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
}

// look takes a glance at an object, which must be possible.
func (p *python) look(t *testing.T, o py.Object, marks py.Marks) *py.Glance {
	t.Helper()
	seen, ok, err := p.Look(o, &marks)
	if !ok || err != nil {
		t.Fatalf("Look = %v, %v", ok, err)
	}
	return seen
}

func (l *library) testGlance(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(glances...)
		a, class := p.eval("a"), p.eval("A")
		for name, marks := range map[string]py.Marks{
			"an attribute": {Class: class, Attributes: []string{"other", "flag"}},
			"a method":     {Class: class, Methods: []string{"method"}},
			"numbers":      {Class: class, Numbers: []string{"number", "numbers", "part.numbers", "part.flag"}},
			"both":         {Class: class, Itself: true, Attributes: []string{"flag"}, Methods: []string{"method"}},
		} {
			p.exec("a.flag = True")
			seen := p.look(t, a, marks)
			if !p.Same(a, seen) || p.Same(p.eval("A()"), seen) != !marks.Itself {
				t.Errorf("%s: not what it was, or another object is", name)
			}
			if itself := seen.Itself(); marks.Itself && itself != a {
				t.Errorf("%s: itself %#x, want %#x", name, itself, a)
			}
			for _, other := range []string{"B()", "1", "None", "A"} {
				if p.Same(p.eval(other), seen) {
					t.Errorf("%s: %s is what an A was", name, other)
				}
			}
			if p.exec("a.flag = False"); p.Same(a, seen) {
				t.Errorf("%s: a change went unseen", name)
			}
			if !seen.Describes(0, nil, nil, 0) || seen.Object() != 0 {
				t.Errorf("%s: an array was seen where none was looked for", name)
			}
		}
	})
}

// testGlanceOfNumbers: numbers are told apart by their value.
func (l *library) testGlanceOfNumbers(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(glances...)
		a := p.eval("a")
		marks := py.Marks{Class: p.eval("A"), Numbers: []string{"number", "part.numbers"}}
		seen := p.look(t, a, marks)
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
			if p.exec(change); p.Same(a, seen) != same {
				t.Errorf("after %s: the same: %v, want %v", change, !same, same)
			}
		}
	})
}

// testGlanceRefused: what cannot be told is not told, and leaves no exception behind.
func (l *library) testGlanceRefused(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(glances...)
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
			if _, ok, err := p.Look(p.eval(tt.object), &tt.marks); ok || err != nil {
				t.Errorf("%s: %v, %v", name, ok, err)
			}
			if _, err := p.Import("sys"); err != nil {
				t.Errorf("%s: afterwards %v", name, err)
			}
		}
	})
}

// testGlanceAfterFork: a fork ends all that was seen before.
func (l *library) testGlanceAfterFork(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(glances...)
		a, marks := p.eval("a"), py.Marks{Class: p.eval("A")}
		before := p.look(t, a, marks)
		p.exec("import os", "child = os.fork()", "if child == 0: os._exit(0)", "os.waitpid(child, 0)")
		if p.Same(a, before) || !p.Same(a, p.look(t, a, marks)) {
			t.Error("what was seen before a fork is the same, or what was seen after it is not")
		}
	})
}

// testGlobals looks at what a global variable leads to, from a thread of the caller's.
func (l *library) testGlobals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := l.interp.Thread()
	var key py.Object
	var seen *py.Glance
	references := func() (n int64) {
		l.do(t, func(p *python) { n = p.references(p.global("glanced")) })
		return n
	}
	set := func(value string) {
		t.Helper()
		rest(thread)
		l.do(t, func(p *python) {
			p.exec(glances...)
			if err := p.setattr(p.must(p.Main()), "glanced", p.eval(value)); err != nil {
				t.Error(err)
			}
		})
	}
	set("a")
	before := references()
	err := thread.Do(func(g *py.GIL) (err error) {
		p := &python{T: t, GIL: g}
		if key, err = g.Interned("glanced"); err != nil {
			return err
		}
		o := p.global("glanced")
		seen = p.look(t, o, py.Marks{Class: g.Type(o), Attributes: []string{"flag"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if !thread.Same(key, seen) {
			t.Fatal("the variable is not what it was")
		}
	}
	rest(thread)
	if after := references(); after != before {
		t.Errorf("%d references, want %d", after, before)
	}
	for _, value := range []string{"B()", "None"} {
		if set(value); thread.Same(key, seen) {
			t.Errorf("%s is what it was", value)
		}
	}
	rest(thread)
	l.do(t, func(p *python) {
		_, err := p.Call(p.builtin("delattr"), []py.Object{p.must(p.Main()), p.must(p.NewStr("glanced"))}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	if thread.Same(key, seen) {
		t.Error("what is not there is what it was")
	}
	rest(thread)
	l.do(t, func(*python) {}) // and no exception is left behind
}

func (p *python) global(name string) py.Object { return p.must(p.Attr(p.must(p.Main()), name)) }
