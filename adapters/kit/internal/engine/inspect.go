package engine

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

// owner is who reads an object.
type owner struct {
	*framework        // the adapter and its settings
	shown      string // the framework's name, as users are told
}

// plan finds the adapter that an object belongs to, and how that one would read it.
func (p *Program) plan(g *py.GIL, o py.Object) (owner, program.Plan, error) {
	f, env, err := p.owner(g, o)
	switch {
	case f == nil:
		return owner{&p.generic, frameworkOf(g, o)}, genericPlan(), nil
	case err != nil:
		return owner{f, f.name}, program.Plan{}, err
	}
	plan, err := f.adapter.Plan(g, env, o)
	return owner{f, f.name}, plan, err
}

// owner finds the framework that an object is an array of; nil: none is known. An error is that of the framework.
func (p *Program) owner(g *py.GIL, o py.Object) (*framework, *program.Env, error) {
	if f := p.classes.owner(g.Type(o)); f != nil {
		if env, ok, err := p.env(g, f); ok || err != nil {
			return f, env, err
		}
	}
	for _, f := range p.frameworks {
		env, ok, err := p.env(g, f)
		if ok && err == nil {
			ok, err = f.adapter.Owns(g, env, o)
		}
		if ok || err != nil {
			return f, env, err
		}
	}
	return nil, nil, nil
}

// arrayClasses are classes of frameworks' own, whose objects are arrays and nothing else that crosses.
type arrayClasses struct {
	mu  sync.Mutex
	all map[py.Object]*framework // with a reference
}

// maxArrayClasses bounds how many are known: a framework may make classes without end.
const maxArrayClasses = 64

// owner gives the framework that a class belongs to; nil: none is known.
func (c *arrayClasses) owner(class py.Object) *framework {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[class]
}

// add makes the class of an array known, if it is f's own: others may be changed.
func (c *arrayClasses) add(g *py.GIL, o py.Object, f *framework) {
	class := g.Type(o)
	if c.owner(class) != nil || !strings.HasPrefix(g.TypeName(o), moduleOf(f.adapter)+".") {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[py.Object]*framework)
	}
	if len(c.all) < maxArrayClasses && c.all[class] == nil {
		c.all[g.Keep(class)] = f // for as long as the interpreter runs
	}
}

// isArrayClass reports whether it is known that objects of exactly this class are arrays.
func (p *Program) isArrayClass(class py.Object) bool { return p.classes.owner(class) != nil }

// watch begins to watch what a path leads to, which is o; of base, that itself. Nil says that it cannot be
// watched, as what begins at a local variable. It comes before a plan, so that what the plan finds is not older.
func (p *Program) watch(g *py.GIL, o, base py.Object, path names.Path) (*py.Watch, error) {
	var steps []py.Step
	if path.Of != (names.Function{}) {
		return nil, nil //nolint:nilnil // see above
	}
	if base == 0 {
		var err error
		if steps, _, err = p.steps(g, path); steps == nil || err != nil {
			return nil, err
		}
	}
	f, env, err := p.owner(g, o)
	if err != nil {
		return nil, err
	}
	if f != nil {
		r, ok := f.adapter.(program.Recogniser)
		if !ok {
			return nil, nil //nolint:nilnil // see above
		}
		marks, ok, err := r.Marks(g, env, o)
		if !ok || err != nil {
			return nil, err
		}
		w, _, err := g.Watch(base, steps, &marks, o)
		return w, err
	}
	if marks := genericMarks(g, o); marks.Class != 0 {
		w, _, err := g.Watch(base, steps, &marks, o)
		return w, err
	}
	return nil, nil //nolint:nilnil // see above
}

// reader makes what carries a plan out.
func (p *Program) reader(f owner, plan *program.Plan) reader {
	p.mu.Lock()
	sync := f.sync
	p.mu.Unlock()
	r := reader{Plan: plan, router: p.router, sync: cmp.Or(sync, plan.Sync, contract.SyncDevice)}
	if s, ok := f.adapter.(program.Storer); ok {
		r.storage = func(g *py.GIL, o py.Object) (program.Storage, bool, error) {
			env, _, err := p.env(g, f.framework)
			if err != nil {
				return program.Storage{}, false, err
			}
			return s.Storage(g, env, o)
		}
	}
	return r
}

// read asks what a name leads to for its memory, which is to be handed over, and begins to watch it. What was
// published and is not what it was, is published anew. The caller drops the reading in the same scope.
func (p *Program) read(g *py.GIL, t *target, s *standing) (f owner, r *reading, err error) {
	switch pub := t.publication; {
	case pub == nil:
		s.watch, err = p.watch(g, t.object, 0, t.path)
	case pub.Watch != nil:
		if s.watch, err = p.watch(g, t.object, t.object, t.path); s.watch != nil {
			s.watch.Under(pub.Watch) // with which the program's reference goes
		}
	}
	if err != nil {
		return owner{framework: new(framework)}, nil, err
	}
	f, plan, err := p.plan(g, t.object)
	if err == nil {
		rd := p.reader(f, &plan)
		if t.publication != nil {
			rd.mark, rd.published = t.publication.Mark, true
		}
		r, err = rd.read(g, t.object)
		err = p.instead(g, t.object, err)
	}
	if err == nil {
		err = p.rebound(g, t.path.String(), t, r)
	}
	if err != nil {
		if r != nil {
			r.drop(g)
		}
		dropWatch(g, s.watch)
	}
	return f, r, err
}

// look asks an object, which the program has published or is publishing, for its memory without a use for it. The
// caller drops the reading in the same scope.
func (p *Program) look(g *py.GIL, o py.Object, f owner, plan *program.Plan, published bool) (*reading, error) {
	r := p.reader(f, plan)
	r.look, r.published = true, published
	return r.read(g, o)
}

// Arrays implements [contract.Producer]. It lists what the program has published, its global variables, and the
// local variables of the functions that run on its main thread, whose type is an array's, but for those whose name
// begins with an underscore.
func (p *Program) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		entries, err := p.list(ctx)
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(contract.Entry{}, about("list", "", "", p.orEnd(err)))
		}
	}
}

// list makes the whole list before anything of it is handed out: nobody's loop shall run with the
// GIL held.
func (p *Program) list(ctx context.Context) ([]contract.Entry, error) {
	if _, _, err := p.state.watch(); err != nil {
		return nil, err
	}
	var entries []contract.Entry
	err := p.interp.Do(ctx, func(g *py.GIL) error {
		found, err := p.entries(ctx, g)
		if err != nil || !g.Commit() {
			return err
		}
		entries = found
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b contract.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, nil
}

func (p *Program) entries(ctx context.Context, g *py.GIL) ([]contract.Entry, error) {
	var entries []contract.Entry
	seen := make(map[string]bool)
	add := func(name string, pub *published.Publication, o py.Object) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return g.Nested(func() error {
			if e, ok := p.entry(g, name, pub, o); ok {
				entries = append(entries, e)
				seen[name] = true
			}
			return nil
		})
	}
	for _, name := range p.published.Names() {
		if pub := p.published.Get(g, name); pub != nil {
			t := target{publication: pub}
			t.close() // nothing is going to be touched
			if err := add(name, pub, pub.Object); err != nil {
				return nil, err
			}
		}
	}
	dict, err := globals(g)
	if err != nil {
		return nil, err
	}
	items, err := g.DictItems(dict)
	if err != nil {
		return nil, err
	}
	for key, o := range items {
		if !g.IsStr(key) {
			continue
		}
		name, err := g.Text(key)
		if err != nil || seen[name] || !isShown(name) || !names.IsIdentifier(name) {
			continue
		}
		if err := add(name, nil, o); err != nil {
			return nil, err
		}
	}
	locals, err := p.localValues(g)
	if err != nil {
		return nil, err
	}
	for _, v := range locals {
		if err := add(v.Name, nil, v.Object); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// entry describes one array; ok is false if the object is none. What cannot be leased is told of in
// the entry.
func (p *Program) entry(g *py.GIL, name string, pub *published.Publication, o py.Object) (e contract.Entry, ok bool) {
	named := pub != nil
	if named && pub.Scalar != nil {
		return contract.Entry{Name: name, Framework: scalarFramework, Published: true, Layout: pub.Array.Layout}, true
	}
	f, plan, err := p.plan(g, o)
	if err == nil && f.framework == &p.generic && !named && !looksLikeArray(g, o) {
		return contract.Entry{}, false
	}
	e = contract.Entry{Name: name, Framework: f.shown, Published: named}
	if err == nil {
		var r *reading
		if r, err = p.look(g, o, f, &plan, named); err == nil {
			e.Layout = r.array.Layout
			r.drop(g)
		}
	}
	if isForCalls(g, o, err) {
		return contract.Entry{}, false
	}
	e.Err = about("list", name, f.name, err)
	return e, true
}
