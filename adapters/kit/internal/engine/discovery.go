package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

// discovery is an array that was found.
type discovery struct {
	contract.Entry
	sight
	cut []names.Step // the part of it that is meant
}

// sight says when something was seen, and under which name, that begins where. In another turn something else may lie at the same address.
type sight struct {
	turn  int
	path  names.Path
	order order
}

// add tells of an array, or of a part of it.
func (s *search) add(g *py.GIL, o py.Object, f owner, row []names.Step, at place) error {
	path := at.path
	if path.Steps = slices.Concat(path.Steps, at.rest); len(path.Steps) > maxSearchedDepth {
		return nil
	}
	name := path.String()
	t := target{object: o, path: at.path, row: row, cut: at.rest}
	e := &discovery{contract.Entry{Name: name, Framework: f.shown}, sight{s.turns, at.path, at.order}, at.rest}
	key := name
	if err := g.Nested(func() error { return s.describe(g, &t, &e.Entry, &key) }); err != nil {
		return err
	}
	if len(at.rest) == 0 && row == nil {
		s.nameObject(g, o, *e)
	}
	s.tell(g, e, key)
	return nil
}

// nameObject notes the best name of an array that is an object of its own: another object with the same memory may have a better one.
func (s *search) nameObject(g *py.GIL, o py.Object, e discovery) {
	known := s.objects[o]
	if known == nil || e.before(known) || known.turn != s.turns && !s.isStill(g, known.path, o) {
		s.objects[o] = &e
	}
}

// isStill reports whether a name leads to an object.
func (s *search) isStill(g *py.GIL, path names.Path, o py.Object) bool {
	now, ok := s.program.reach(g, path)
	return ok && now == o
}

// tell adds an array, which is known by key under whatever name. Its name is what was published, or the one that says most.
func (s *search) tell(g *py.GIL, e *discovery, key string) {
	known, gone := s.found[key], false
	same := known != nil && known.Name == e.Name
	if known != nil && !same {
		same, gone = s.still(g, known, key)
	}
	switch {
	case gone: // a variable of a call that has ended, and so have those of its other names, which lasted no longer
		*known = *e
		return
	case same:
		if !known.Published && e.before(known) {
			known.Name, e.Name = e.Name, known.Name
			known.sight, known.cut = e.sight, e.cut
		}
		if known.Name != e.Name && len(known.Also) < maxAlso && !slices.Contains(known.Also, e.Name) {
			known.Also = append(known.Also, e.Name)
		}
		return
	}
	s.found[key] = e
	if len(s.entries) >= s.limit {
		s.more++
		return
	}
	s.entries = append(s.entries, e)
}

// before reports whether an array is rather told by this name than by that of another: an underscore, as IPython's _ for what a cell
// has shown last, comes after all others, a name after one that lasts longer, and a longer name after a shorter one.
func (d *discovery) before(other *discovery) bool {
	own := func(s names.Step) bool { return s.Kind == names.Attr && strings.HasPrefix(s.Text, "_") }
	hidden := func(p names.Path) bool { return strings.HasPrefix(p.Root, "_") || slices.ContainsFunc(p.Steps, own) }
	if a, b := hidden(d.path), hidden(other.path); a != b {
		return b
	}
	if a, b := d.order.lasts(), other.order.lasts(); a != b {
		return a < b
	}
	return len(d.Name) < len(other.Name)
}

// still reports whether the name by which an array was found leads to the array that key says. gone: it leads nowhere.
func (s *search) still(g *py.GIL, d *discovery, key string) (same, gone bool) {
	if d.turn == s.turns {
		return true, false
	}
	for n := len(d.path.Steps); n >= 0; n-- {
		o, ok := s.program.reach(g, d.path.Front(n))
		if !ok {
			continue
		}
		t := target{object: o, path: d.path, cut: d.cut}
		b, behind, err := s.program.fronted(g, o, d.path.Steps[n:])
		if behind {
			t.object, t.row = b.Array, b.Part
		}
		if err != nil || !behind && n < len(d.path.Steps) {
			return false, false
		}
		var e contract.Entry
		var now string
		err = g.Nested(func() error { return s.describe(g, &t, &e, &now) })
		return err == nil && now == key, false
	}
	return false, true
}

// whereIs tells memory from other memory, and an object without memory from other objects.
func whereIs(a routes.Array, o py.Object) string {
	l := a.Layout
	if a.Addr == 0 || l.Len() == 0 {
		return fmt.Sprint("object ", o, l.Shape())
	}
	return fmt.Sprint(a.Addr, l.DType(), l.Shape(), l.Strides(), l.Device())
}

// describe reads an array as for a list, and says where its memory lies, by which the same array is known under another name.
func (s *search) describe(g *py.GIL, t *target, e *contract.Entry, key *string) error {
	p := s.program
	f, plan, err := p.plan(g, t.object)
	var r *reading
	if err == nil {
		r, err = p.look(g, t.object, f, &plan, false)
	}
	if err == nil {
		defer r.drop(g)
		err = t.part(r)
	}
	if err != nil {
		e.Err = about("list", e.Name, f.name, err)
		*key = fmt.Sprint("object ", t.object, t.cut)
		return nil
	}
	l := r.array.Layout
	e.Layout = l
	*key = whereIs(r.array.Array, t.object)
	if r.temporary {
		*key = fmt.Sprint("object ", t.object, t.cut)
	}
	if !r.array.OnGPU && l.Device().HostReadable() && r.array.Addr != 0 {
		e.Route, e.Reason = p.route(g, t.object, r)
	}
	return nil
}

// route says how a look would reach the memory of an array, o, now, and why it would be copied.
func (p *Program) route(g *py.GIL, o py.Object, r *reading) (route core.Route, reason core.Reason) {
	want := routes.Want{Spared: r.spared, Kept: func() bool { return p.kept(g, o) }}
	if r.temporary {
		want.Reason = contract.ReasonConverted
	}
	place, why, err := p.router.Share(r.array.Array, want)
	if err != nil {
		return "", ""
	}
	switch {
	case why == "":
		route = place.Route
		_ = place.GiveUp() // nothing was granted
	case r.array.Pointer == nil && p.router.Promotable(r.array.Array, why, want):
		return contract.RouteSharedHeap, "" // the look makes it so
	}
	return route, why
}
