package main

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// references gives sys.getrefcount of an object, which counts the scope's and the call's own too.
func (p *python) references(o py.Object) int64 {
	n, err := p.Int64(p.must(p.Call(p.eval("__import__('sys').getrefcount"), []py.Object{o}, nil)))
	if err != nil {
		panic(err)
	}
	return n
}

func (l *library) testKeepAndDrop(t *testing.T) {
	var kept py.Object
	l.do(t, func(p *python) {
		p.exec("import weakref", "class A: pass", "a = A()", "seen = weakref.ref(a)")
		main := p.must(p.Main())
		if err := p.setattr(main, "pytests_seen", p.eval("seen")); err != nil {
			t.Error(err)
		}
		kept = p.Keep(p.eval("a"))
		p.exec("del a")
	})
	alive := func(p *python) (is bool) {
		_ = p.Nested(func() error {
			is = !p.IsNone(p.must(p.Call(p.must(p.Attr(p.must(p.Main()), "pytests_seen")), nil, nil)))
			return nil
		})
		return is
	}
	l.do(t, func(p *python) {
		if !alive(p) {
			t.Error("what was kept is gone")
		}
		p.Drop(kept)
		if alive(p) {
			t.Error("what was dropped is still there")
		}
	})
}

func (p *python) setattr(o py.Object, name string, v py.Object) error {
	_, err := p.Call(p.builtin("setattr"), []py.Object{o, p.must(p.NewStr(name)), v}, nil)
	return err
}

// iterations is how often each path is gone in search of a reference that is not given back.
const iterations = 20_000

func (l *library) testNoReferenceLeaks(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(odd...)
		p.exec(capsule...)
		p.exec("class A:", "    x = 1", "    def m(self, *a, **k): return self", "    def bad(self): raise ValueError(self)",
			"a = A()", "d = {'k': a, 'l': [a]}", "u = (a, a)", "b = bytearray(8)", "s = 'te xt' * 2", "c = new()")
		o, d, u, list := p.eval("a"), p.eval("d"), p.eval("u"), p.eval("[a, a]")
		b, s, c, one := p.eval("b"), p.eval("s"), p.eval("c"), p.eval("1")
		paths := map[string]func(){
			"attr":      func() { p.must(p.Attr(o, "x")) },
			"no attr":   func() { _, _, _ = p.AttrOK(o, "y") },
			"raises":    func() { _, _ = p.CallMethod(o, "bad", nil, nil) },
			"call":      func() { p.must(p.CallMethod(o, "m", []py.Object{o, d}, []py.KW{{Name: "k", Value: o}})) },
			"no method": func() { _, _ = p.CallMethod(o, "nothing", []py.Object{o}, nil) },
			"item":      func() { p.must(p.ItemStr(d, "k")) },
			"no item":   func() { _, _ = p.Item(d, o) },
			"tuple":     func() { _, _ = p.TupleItems(u) },
			"no tuple":  func() { _, _ = p.TupleItems(o) },
			"list":      func() { _, _ = p.ListItems(list) },
			"dict": func() {
				pairs, _ := p.DictItems(d)
				for range pairs {
					break
				}
			},
			"new":       func() { p.must(p.NewTuple(o, o, d)) },
			"buffer":    func() { _, _ = p.Buffer(b, py.BufferFull) },
			"no buffer": func() { _, _ = p.Buffer(o, py.BufferFull) },
			"text":      func() { _, _ = p.Text(s) },
			"no text":   func() { _, _ = p.Text(o) },
			"repr":      func() { _, _ = p.Repr(o) },
			"number":    func() { _, _ = p.Int64(one) },
			"no number": func() { _, _ = p.Int64(o) },
			"kind":      func() { _ = p.IsDict(o) || p.IsCapsule(o) },
			"names":     func() { _, _ = p.TypeName(o), p.MRO(o) },
			"module":    func() { _, _ = p.Loaded("sys"); _, _ = p.Loaded("nothing") },
			"capsule":   func() { _, _ = p.Capsule(c, "dltensor"); _, _ = p.CapsuleName(c) },
			"exception": func() { _ = p.Exception(o) },
			"within":    func() { _ = l.interp.Within(func(g *py.GIL) error { _, err := g.Attr(o, "x"); return err }) },
			"keep":      func() { p.Drop(p.Keep(o)) },
		}
		watched := []py.Object{o, d, u, list, b, s, c, p.Type(o)}
		for name, path := range paths {
			n := iterations
			if name == "raises" || name[:2] == "no" || name == "exception" {
				n /= 10 // a traceback is made each time, which takes 30 times as long
			}
			path() // what is made once is made now
			_ = p.Nested(func() error { p.wantSteady(name, watched, n, path); return nil })
		}
	})
	l.leavesNothingBehind(t)
}

// wantSteady goes a path n times, in a scope of its own each time, and checks that no object has more
// references afterwards, and that no others have come into being.
func (p *python) wantSteady(name string, watched []py.Object, n int, path func()) {
	p.Helper()
	blocks := p.eval("__import__('sys').getallocatedblocks")
	allocated := func() int64 {
		_ = p.Nested(func() error { p.must(p.Call(p.eval("__import__('gc').collect"), nil, nil)); return nil })
		v, err := p.Int64(p.must(p.Call(blocks, nil, nil)))
		if err != nil {
			panic(err)
		}
		return v
	}
	counts := func() (all []int64) {
		for _, o := range watched {
			_ = p.Nested(func() error { all = append(all, p.references(o)); return nil })
		}
		return all
	}
	blocksBefore := allocated() // first, since it collects what may refer to those that are watched
	before := counts()
	for range n {
		_ = p.Nested(func() error { path(); return nil })
	}
	blocksAfter := allocated()
	after := counts()
	for i := range watched {
		if after[i] != before[i] {
			p.Errorf("%s: object %d has %d references, and had %d", name, i, after[i], before[i])
		}
	}
	// A leak would be at least one block each time; caches inside Python move by some.
	if grown := blocksAfter - blocksBefore; grown > int64(n/2) {
		p.Errorf("%s: %d blocks more", name, grown)
	}
}

// leavesNothingBehind checks what ends with Do rather than with a nested scope.
func (l *library) leavesNothingBehind(t *testing.T) {
	t.Helper()
	var o py.Object
	var before, after int64
	l.do(t, func(p *python) { o = p.Keep(p.eval("object()")) })
	l.do(t, func(p *python) { before = p.references(o) })
	failure := errors.New("on purpose")
	for range 1000 {
		err := l.interp.Do(t.Context(), func(g *py.GIL) error {
			for range 10 {
				if _, err := g.NewTuple(o, o); err != nil {
					return err
				}
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Fatalf("error %v, want f's own", err)
		}
	}
	l.do(t, func(p *python) { after = p.references(o); p.Drop(o) })
	if before != after {
		t.Errorf("%d references, and had %d", after, before)
	}
}
