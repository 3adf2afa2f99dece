package program

import (
	"strconv"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/failure"
	"github.com/ndbridge/ndbridge/adapters/kit/program/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/program/lookup"
	"github.com/ndbridge/ndbridge/adapters/kit/program/names"
	"github.com/ndbridge/ndbridge/adapters/kit/program/published"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/export"
)

// Publish gives an array a name, which the host can ask for as for a variable, and holds it until it
// is unpublished or the name goes to another. An array on a GPU is made when the calling thread's work
// until now is done: what is on the stream that is current, if the framework has such a thing, and else
// everything that the array's context was given. Publish must be called with the GIL held, and waits for
// nothing that may be waiting for the GIL.
//
// It wraps core.ErrConfig if the name cannot be one, and says why if the object is no array that
// could be leased.
func (p *Program) Publish(g *py.GIL, name string, o py.Object) error {
	path, err := names.Parse(name)
	if err != nil {
		return failure.About("publish", "", "", err)
	}
	p.board.WithdrawStale(g, &p.published)
	t := published.Target{Object: o}
	err = g.Nested(func() error {
		f, plan, err := p.plan(g, o, nil)
		if err != nil {
			return failure.About("inspect", "", f.name, err)
		}
		r, err := p.look(g, o, f, &plan)
		if err != nil {
			return failure.About("inspect", "", f.name, err)
		}
		defer r.drop(g)
		if t.Mark, err = p.mark(g, o, f, r); err != nil || r.array.Pointer != nil || r.temporary {
			return err
		}
		t.Offer = p.board.Offer(path.String(), r.array.Array, func(place kit.Placement) (core.Lease, *holds.Kept, error) {
			return p.enter(f, r, place, false)
		})
		return nil
	})
	if err != nil {
		return failure.About("publish", name, "", err)
	}
	g.Keep(o)
	before, refused := p.published.Put(path.String(), t)
	p.state.Touch()
	p.board.Withdraw(g, refused)
	p.board.Withdraw(g, before.Offer)
	before.Drop(g)
	return nil
}

// mark marks the work that an array waits for; nil if there is none, or the framework knows better at any
// time.
func (p *Program) mark(g *py.GIL, o py.Object, f owner, r *reading) (*export.Mark, error) {
	if r.array.Pointer == nil {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if s, ok := f.adapter.(Streamer); ok {
		env, _, err := p.env(g, f.framework)
		if err != nil {
			return nil, err
		}
		stream, ok, err := s.CurrentStream(g, env, o)
		if err != nil {
			return nil, failure.About("inspect", "", f.name, err)
		}
		if ok {
			return p.router.GPU().Mark(*r.array.Pointer, stream)
		}
	}
	if r.sync == core.SyncStream {
		return nil, nil //nolint:nilnil // the framework says when it is asked for the array
	}
	var mark *export.Mark
	var err error
	g.Unlocked(func() { mark, err = p.router.GPU().MarkAll(*r.array.Pointer) })
	return mark, err
}

// Unpublish takes a name back; leases on the array stand. It must be called with the GIL held. An
// unknown name is a KeyError.
func (p *Program) Unpublish(g *py.GIL, name string) error {
	text := name
	if path, err := names.Parse(name); err == nil {
		text = path.String()
	}
	before, _ := p.published.Put(text, published.Target{})
	if before.Object == 0 {
		return &core.PythonError{Type: "KeyError", Message: "no array is published as " + strconv.Quote(name)}
	}
	p.state.Touch()
	p.board.Withdraw(g, before.Offer)
	before.Drop(g)
	return nil
}

// find follows a path to its object, which the scope holds. The caller closes it. What is not there is a
// *lookup.MissingError.
func (p *Program) find(g *py.GIL, path names.Path) (published.Target, error) {
	if t, ok, err := p.published.Get(g, path.String()); ok || err != nil {
		return t, err
	}
	t, ok, err := p.published.Get(g, path.Root)
	if err != nil {
		return published.Target{}, err
	}
	t.Close() // it says nothing about what the object leads to
	o := t.Object
	if !ok {
		if o, err = lookup.Global(g, path.Root, p.published.Names); err != nil {
			return published.Target{}, err
		}
	}
	where := path.Root
	for _, s := range path.Steps {
		if o, err = lookup.Follow(g, o, s, where); err != nil {
			return published.Target{}, err
		}
		where += s.String()
	}
	return published.Target{Object: o}, nil
}
