package main

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// crowd makes a list of objects, which watchCrowd watches: calls counts down to when the answer is another one.
var crowd = []string{
	"class A:",
	"    flag, calls = True, None",
	"    def ask(self):",
	"        if self.calls is None: return True",
	"        self.calls -= 1",
	"        return self.calls >= 0",
	"crowd = [A() for _ in range(200)]",
}

// watchCrowd makes the list, and watches its objects on this thread, each by two steps of which the first is the same.
func (l *library) watchCrowd(t *testing.T) (thread *py.Thread, watches []*py.Watch) {
	t.Helper()
	l.do(t, func(p *python) {
		p.exec(crowd...)
		if err := p.setattr(p.must(p.Main()), "crowd", p.eval("crowd")); err != nil {
			t.Fatal(err)
		}
	})
	thread = l.interp.Thread()
	err := thread.Do(func(g *py.GIL) error {
		p := &python{T: t, GIL: g}
		list := p.global("crowd")
		globals := p.must(g.Attr(p.must(g.Main()), "__dict__"))
		first := py.Step{Kind: py.StepKey, Class: g.Type(globals), Key: p.must(g.NewKey("crowd"))}
		for i := range 200 {
			second := py.Step{Kind: py.StepIndex, Class: g.Type(list), Index: i}
			o, ok := g.Follow(list, second)
			if !ok {
				t.Fatalf("object %d is not there", i)
			}
			w, ok, err := g.Watch(0, []py.Step{first, second}, &py.Marks{Class: g.Type(o), Methods: []string{"ask"}}, o)
			if !ok || err != nil {
				t.Fatalf("object %d: %v, %v", i, ok, err)
			}
			watches = append(watches, w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return thread, watches
}

// mapping maps memory that is not Go's.
func mapping(t *testing.T, size int64) *shm.Mapping {
	t.Helper()
	file, err := shm.Create("test", size)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shm.Map(file, size, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), file.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// testCopies: what is copied is shown only if it was read, and the object had that memory to the end.
func (l *library) testCopies(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const size = 3000
	source, target := mapping(t, size*200), mapping(t, size*200)
	from, to := source.Bytes(), target.Bytes()
	thread, watches := l.watchCrowd(t)
	checks := make([]py.Check, len(watches))
	hole := func(i int) bool { return i == 7 || i == 130 } // memory that is not there
	for i, w := range watches {
		checks[i] = py.Check{Watch: w, Copy: py.Copy{
			From: source.Addr() + uintptr(i*size), To: target.Addr() + uintptr(i*size), Size: size,
		}}
		if hole(i) {
			checks[i].Copy.From = 64
		}
	}
	for round := byte(1); round < 4; round++ {
		for i := range from {
			from[i] = round + byte(i/size)
		}
		old := bytes.Clone(to)
		l.stir(t, round)
		thread.Check(checks)
		for i, c := range checks {
			got, good := to[i*size:(i+1)*size], from[i*size:(i+1)*size]
			is := round == 1 || i%50 != 11 && (round == 2 || i%50 != 12)
			switch {
			case hole(i): // and what is behind it in the same batch is asked for again, too
				if c.Same {
					t.Errorf("round %d: memory that is not there was copied for object %d", round, i)
				}
			case !is && (c.Same || !bytes.Equal(got, old[i*size:(i+1)*size])):
				t.Errorf("round %d: object %d is not what it was, and was copied: %v", round, i, c.Same)
			case is && c.Same && !bytes.Equal(got, good):
				t.Errorf("round %d: the copy of object %d is wrong", round, i)
			case is && !c.Same && (i < 7 || i > 64 && i < 130):
				t.Errorf("round %d: object %d was not copied", round, i)
			}
		}
	}
	l.do(t, func(p *python) {
		for _, w := range watches {
			w.Drop(p.GIL)
		}
	})
}

// testUnder: what is watched under another watch is not the same once that was dropped, when its base may be gone.
func (l *library) testUnder(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(marked...)
		o := p.eval("a")
		marks := py.Marks{Class: p.eval("A"), Attributes: []string{"flag"}}
		watch := func() *py.Watch {
			w, ok, err := p.Watch(o, nil, &marks, o)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			return w
		}
		over, under := watch(), watch()
		under.Under(over)
		if !p.Same(under) {
			t.Error("not the same while the other stands")
		}
		if over.Drop(p.GIL); p.Same(under) {
			t.Error("the same when the other has gone")
		}
		under.Drop(p.GIL)
	})
}

// stir makes objects of the crowd others: in the second round while they are copied, in the third before.
func (l *library) stir(t *testing.T, round byte) {
	t.Helper()
	first, calls, ok := 0, 0, true
	switch round {
	case 2:
		first, calls = 11, 1
	case 3:
		first, calls = 12, 0
	default:
		ok = false
	}
	l.do(t, func(p *python) {
		for i := first; ok && i < 200; i += 50 {
			o := p.must(p.Item(p.global("crowd"), p.must(p.NewInt(int64(i)))))
			if err := p.setattr(o, "calls", p.must(p.NewInt(int64(calls)))); err != nil {
				t.Error(err)
			}
		}
	})
}
