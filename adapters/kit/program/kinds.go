package program

import (
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

const (
	// maxKinds bounds how many kinds of arrays are remembered that have the same marks.
	maxKinds = 1024
	// maxLikes bounds how many marks arrays of one class may have.
	maxLikes = 4
)

// kinds remembers what reading arrays has given. An array that differs from one of them in nothing but where its elements lie would give
// the same, so it is not read. The zero value is ready.
type kinds struct {
	mu      sync.Mutex // under it nothing of Python runs
	classes map[py.Object][]*likes
	all     []*likes // those with a likeness
}

// likes are the kinds of arrays that have the same marks.
type likes struct {
	marks    py.Marks
	likeness *py.Likeness // nil: nothing tells them apart
	known    map[string]*exemplar
}

// exemplar is what reading an array has given, but for where its elements lie.
type exemplar struct {
	owner  owner
	layout core.Layout
	quirks []core.QuirkID
	part   py.Object // by which it is recognised, with a reference, or 0
}

// seen is what was seen of an array whose kind is not known, by marks that it has.
type seen struct {
	likes *likes
	kind  string
}

// look gives the kind of an array and where its elements lie, or says what was seen of it.
func (k *kinds) look(g *py.GIL, o py.Object) (known *exemplar, addr uintptr, all []seen) {
	k.mu.Lock()
	likes := k.all // to which is only appended
	k.mu.Unlock()
	for _, l := range likes {
		sight, ok := g.Look(l.likeness, o)
		if !ok {
			continue
		}
		k.mu.Lock()
		known = l.known[string(sight.Kind())]
		k.mu.Unlock()
		if known != nil {
			return known, sight.Addr(), nil
		}
		all = append(all, seen{l, string(sight.Kind())})
	}
	return nil, 0, all
}

// open makes arrays of a class comparable that have these marks, if anything tells them apart. The class lives for as long as the interpreter runs.
func (k *kinds) open(g *py.GIL, marks *py.Marks) {
	likeness, ok := g.Likeness(marks)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.classes == nil {
		k.classes = make(map[py.Object][]*likes)
	}
	class := k.classes[marks.Class]
	if len(class) == maxLikes || slices.ContainsFunc(class, func(l *likes) bool { return l.marks.Equal(marks) }) {
		return
	}
	l := &likes{marks: *marks, likeness: likeness, known: make(map[string]*exemplar)}
	k.classes[marks.Class] = append(class, l)
	if ok {
		k.all = append(k.all, l)
	}
}

// hopeless reports whether arrays of a class are known to be told apart by nothing.
func (k *kinds) hopeless(class py.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.classes[class]
	return len(all) > 0 && all[0].likeness == nil
}

// add remembers the kind of an array that was seen, has been read since, and is what it was.
func (k *kinds) add(g *py.GIL, o py.Object, s seen, f owner, r *reading) {
	sight, ok := g.Look(s.likes.likeness, o)
	l := r.array.Layout
	if !ok || string(sight.Kind()) != s.kind || !sight.Describes(r.array.Addr, l.Shape(), l.Strides(), l.DType().Size()) {
		return
	}
	var over []py.Object
	k.mu.Lock()
	known := s.likes.known
	if len(known) == maxKinds {
		over = s.likes.forget(nil)
	}
	if known[s.kind] == nil {
		known[s.kind] = &exemplar{f, l, r.quirks, g.Keep(sight.Part())}
	}
	k.mu.Unlock()
	g.DropAll(over)
}

// forget forgets all kinds, and appends what they have held.
func (l *likes) forget(held []py.Object) []py.Object {
	for _, old := range l.known {
		held = append(held, old.part)
	}
	clear(l.known)
	return held
}

// close forgets all kinds, and gives what they have held.
func (k *kinds) close() (held []py.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		held = l.forget(held)
	}
	return held
}

// readUnnamed asks an object for its memory, unless it is like one that was asked before. The caller drops the reading in the same scope.
func (p *Program) readUnnamed(g *py.GIL, o py.Object) (f owner, r *reading, err error) {
	known, addr, seen := p.kinds.look(g, o)
	if known != nil {
		if r = p.readAs(g, o, known, addr); r != nil {
			return known.owner, r, nil
		}
	}
	f, plan, err := p.plan(g, o)
	if err != nil {
		return f, nil, err
	}
	rd := p.reader(f, &plan)
	if r, err = rd.read(g, o); err == nil && !plan.EndOnMain {
		p.learn(g, o, seen, f, r)
	}
	return f, r, err
}

// readAs gives what reading an array of a known kind would give; nil: it must be read.
func (p *Program) readAs(g *py.GIL, o py.Object, known *exemplar, addr uintptr) *reading {
	array, err := p.router.Inspect(kit.Array{Addr: addr, Layout: known.layout}, true)
	if err != nil || array.Pointer != nil {
		return nil
	}
	r := &reading{array: array, quirks: known.quirks}
	if storage := p.storage(known.owner); storage != nil && array.Layout.Len() > 0 {
		s, ok, err := storage(g, o)
		if !ok || err != nil || !array.Inside(s.Addr, s.Size) {
			return nil
		}
		r.hold = !s.Owned
		r.stands(g, o, s, storage, false)
	}
	return r
}

// learn remembers what the array of a result was read as. An array has one kind by the marks that are its own, and none by others.
func (p *Program) learn(g *py.GIL, o py.Object, all []seen, f owner, r *reading) {
	if f.adapter == nil {
		return
	}
	p.classes.add(g, o, f.framework)
	class := g.Type(o)
	recogniser, ok := f.adapter.(Recogniser)
	if !ok || p.classes.owner(class) == nil || p.kinds.hopeless(class) {
		return
	}
	env, ok, err := p.env(g, f.framework)
	if !ok || err != nil {
		return
	}
	marks, ok, err := recogniser.Marks(g, env, o)
	if !ok || err != nil {
		return
	}
	i := slices.IndexFunc(all, func(s seen) bool { return s.likes.marks.Equal(&marks) })
	switch {
	case i < 0:
		p.kinds.open(g, &marks)
	case !r.temporary && r.spared == "" && r.array.Pointer == nil && (r.still != nil || !r.hold):
		p.kinds.add(g, o, all[i], f, r)
	}
}
