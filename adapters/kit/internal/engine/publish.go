package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
)

// Named is an object that is given a name.
type Named struct {
	Name   string
	Object py.Object
}

// Publish makes each object the next version of its name, all at once: the host sees all of them or none. The
// host can ask for a name as for a variable. The program holds what it has published until the name is
// unpublished or goes to another object. An array on a GPU is made when the calling thread's work until now
// is done: what is on the stream that is current, if the framework has such a thing, and else everything that
// the array's context was given. A number of Python's own is published as an array without axes. What can be called, and is no array, is
// published for the host to call. Publish must be called with the GIL held, and waits for nothing that may be waiting for the GIL.
//
// It wraps core.ErrConfig if a name cannot be one, core.ErrUnsupported if there is no room for so many names, and says
// why if an object is no array that could be leased.
// After an error nothing was published.
func (p *Program) Publish(g *py.GIL, values ...Named) error {
	next, err := p.prepareAll(g, values, p.publication)
	if err != nil {
		return err
	}
	if !p.published.Room(next) {
		p.endUnused(g, next)
		return &core.Error{
			Op: "publish", Kind: core.ErrUnsupported, Err: errors.New("too many names are published: there is no room for more"),
			Remedy: "unpublish names that nobody looks at, or publish several arrays as one",
		}
	}
	p.put(g, next)
	return nil
}

// Adopt is Publish for what the program has published, whatever this host's settings make of it: what it refuses is published by nothing
// but the object, and the host learns why when it asks. Of names for which there is no room it is not told.
// Only names that cannot be published are an error.
func (p *Program) Adopt(g *py.GIL, values ...Named) error {
	next, err := p.prepareAll(g, values, func(g *py.GIL, name string, o py.Object) (*published.Publication, error) {
		made, err := p.publication(g, name, o)
		if err != nil {
			made = &published.Publication{Object: g.Keep(o), Unseen: true}
		}
		return made, nil
	})
	if err == nil {
		p.put(g, next)
	}
	return err
}

// prepareAll makes the publications of values that are to be put together, each with publication.
func (p *Program) prepareAll(
	g *py.GIL, values []Named, publication func(*py.GIL, string, py.Object) (*published.Publication, error),
) (map[string]*published.Publication, error) {
	for _, v := range values {
		p.published.Rouse(v.Name)
	}
	p.separate(g)
	next := make(map[string]*published.Publication, len(values))
	for _, v := range values {
		if err := p.prepare(g, next, v, publication); err != nil {
			p.endUnused(g, next)
			return nil, err
		}
	}
	// To ask one array may run code of the program's, or let another thread run, which may publish as well.
	for name, stale := p.published.Stale(next); stale; name, stale = p.published.Stale(next) {
		for _, v := range values {
			if again, _ := p.publishedName(v.Name); again != name { // it was one before
				continue
			}
			if err := p.prepare(g, next, v, publication); err != nil {
				p.endUnused(g, next)
				return nil, err
			}
		}
	}
	return next, nil
}

// prepare adds the publication of a value to those that are to be put together.
func (p *Program) prepare(
	g *py.GIL, next map[string]*published.Publication, v Named, publication func(*py.GIL, string, py.Object) (*published.Publication, error),
) error {
	name, err := p.publishedName(v.Name)
	if err != nil {
		return about("publish", "", "", err) // it has the name, in quotes
	}
	made, err := publication(g, name, v.Object)
	if err != nil {
		return about("publish", name, "", err)
	}
	before := next[name] // in another spelling, or stale
	next[name] = made
	if before != nil {
		p.endUnused(g, map[string]*published.Publication{name: before})
	}
	return nil
}

// separate ends what a fork has made useless.
func (p *Program) separate(g *py.GIL) {
	if before := p.published.Separate(); before != nil {
		p.finish(g, before)
	}
}

// finish ends publications that their names do not have any more, unless the host still holds their offers.
func (p *Program) finish(g *py.GIL, before []*published.Publication) {
	for _, over := range p.published.Ended(before...) {
		p.endPublication(g, over)
	}
}

// put makes publications those of their names, and ends what is over.
func (p *Program) put(g *py.GIL, next map[string]*published.Publication) {
	p.finish(g, p.published.Put(next))
	p.state.touch()
}

// publishedName gives the one spelling of a name.
func (p *Program) publishedName(name string) (string, error) {
	if p.published.Last(name) != nil {
		return name, nil
	}
	path, err := names.Parse(name)
	if err == nil && path.Of != (names.Function{}) {
		err = &core.Error{
			Op: "read name", Object: strconv.Quote(names.Clip(name)), Kind: core.ErrConfig,
			Err: errors.New("it is that of a function's variable"), Remedy: "publish under a name without brackets of a call",
		}
	}
	return path.String(), err
}

// Unpublish takes a name back; leases on the array stand. It must be called with the GIL held. An
// unknown name is a KeyError.
func (p *Program) Unpublish(g *py.GIL, name string) error {
	text := name
	if path, err := names.Parse(name); err == nil {
		text = path.String()
	}
	if p.published.Last(text) == nil {
		return &core.PythonError{Type: "KeyError", Message: "nothing is published as " + strconv.Quote(names.Clip(name))}
	}
	p.put(g, map[string]*published.Publication{text: nil})
	return nil
}

// endPublication gives up what a publication that is over held, on this thread.
func (p *Program) endPublication(g *py.GIL, over *published.Publication) {
	for _, h := range p.giveUp(over) {
		h.Drop(g)
	}
}

// giveUp ends the offer of a publication that is over, and gives what is to be given back in Python.
func (p *Program) giveUp(over *published.Publication) []holds.Hold {
	held := over.Kept.Take()
	if over.Offer.ID != 0 {
		_ = p.leases.Release(context.Background(), over.Offer.ID) // an error is of no use to who publishes
	}
	if over.Mark != nil {
		over.Mark.Close()
	}
	return append(held, holds.Hold{Object: over.Object, Watch: over.Watch})
}

// endUnused ends publications that were made, and are not put in the place of those before. Some may have nothing of
// their own.
func (p *Program) endUnused(g *py.GIL, unused map[string]*published.Publication) {
	for _, made := range unused {
		if !made.Renews() {
			p.endPublication(g, made)
		}
	}
}

// publication prepares an object to be published under a name.
func (p *Program) publication(g *py.GIL, name string, o py.Object) (made *published.Publication, err error) {
	last := p.published.Last(name)
	if last != nil && last.Unseen && p.codec.Load() != nil {
		last = nil // it has no offer, for which it is asked now
	}
	if last != nil && last.Watch != nil && last.Mark == nil {
		if last.Object == o && g.Same(last.Watch) && last.Forks == p.published.Forks() {
			return last.Again(), nil
		}
		if watch, addr, ok := g.Moved(last.Watch, o); ok {
			made = &published.Publication{Object: g.Keep(o), Watch: watch, Array: routes.Array{Addr: addr, Layout: last.Array.Layout}, Unseen: last.Unseen}
			if last.Offer.ID != 0 {
				p.offer(made, last, owner{shown: last.Offer.Framework}, &reading{
					array: routes.Located{Array: made.Array}, quirks: last.Offer.Quirks,
				})
			}
			return made, nil
		}
	}
	err = g.Nested(func() error {
		made, err = p.newPublication(g, last, o)
		return err
	})
	return made, err
}

// newPublication asks an object for its memory.
func (p *Program) newPublication(g *py.GIL, last *published.Publication, o py.Object) (*published.Publication, error) {
	made := &published.Publication{Unseen: p.codec.Load() == nil}
	if l, value, ok := scalar(g, o); ok {
		made.Scalar, made.Array.Layout = value, l
		if made.Unseen {
			made.Object = g.Keep(o)
			return made, nil
		}
		place, err := p.router.Put(value, l, contract.ReasonConverted)
		if err != nil {
			return nil, err
		}
		p.enterOffer(made, last, owner{shown: scalarFramework}, &reading{}, place)
		made.Object = g.Keep(o)
		return made, nil
	}
	if g.IsInt(o) {
		return nil, &core.Error{
			Kind: core.ErrDType, Err: errors.New("the int does not fit a signed integer of 64 bits"),
			Remedy: "publish a float, or an array of another dtype",
		}
	}
	watch, err := p.watch(g, o, o, names.Path{})
	if err != nil {
		return nil, err
	}
	var r *reading
	f, plan, err := p.plan(g, o)
	if err == nil {
		r, err = p.look(g, o, f, &plan, true)
	}
	if err != nil {
		dropWatch(g, watch)
		if isForCalls(g, o, err) { // there is nothing to offer
			made.Object = g.Keep(o)
			return made, nil
		}
		return nil, about("inspect", "", f.name, err)
	}
	defer r.drop(g)
	if made.Mark, err = p.mark(g, o, f, r); err != nil {
		dropWatch(g, watch)
		return nil, err
	}
	l := r.array.Layout
	if watch != nil && (!watch.Describes(r.array.Addr, l.Shape(), l.Strides(), l.DType().Size()) || !g.Same(watch)) {
		dropWatch(g, watch)
		watch = nil
	}
	made.Object, made.Array, made.Watch = g.Keep(o), r.array.Array, watch
	if plan.Fixed && r.array.Pointer == nil && !r.temporary {
		p.offer(made, last, f, r)
	}
	return made, nil
}

// scalarFramework is what numbers of Python's own belong to.
const scalarFramework = "python"

// scalar gives a number of Python's own as an array without axes.
func scalar(g *py.GIL, o py.Object) (l core.Layout, value []byte, ok bool) {
	spec := core.LayoutSpec{ReadOnly: true}
	switch {
	case g.IsBool(o):
		spec.DType, value = core.Bool, []byte{0}
		if o == g.True() {
			value[0] = 1
		}
	case g.IsInt(o):
		n, err := g.Int64(o)
		if err != nil {
			return l, nil, false
		}
		spec.DType, value = core.Int64, binary.LittleEndian.AppendUint64(nil, uint64(n))
	case g.TypeName(o) == "float":
		x, err := g.Float64(o)
		if err != nil {
			return l, nil, false
		}
		spec.DType, value = core.Float64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	default:
		return l, nil, false
	}
	l, err := core.NewLayout(spec)
	return l, value, err == nil
}

// mark marks the work that an array waits for; nil if there is none, or the framework knows better at any
// time.
func (p *Program) mark(g *py.GIL, o py.Object, f owner, r *reading) (*export.Mark, error) {
	if r.array.Pointer == nil {
		return nil, nil //nolint:nilnil // nothing to wait for
	}
	if s, ok := f.adapter.(program.Streamer); ok {
		env, _, err := p.env(g, f.framework)
		if err != nil {
			return nil, err
		}
		stream, ok, err := s.CurrentStream(g, env, o)
		if err != nil {
			return nil, about("inspect", "", f.name, err)
		}
		if ok {
			return p.router.GPU.Mark(*r.array.Pointer, stream)
		}
	}
	if r.sync == contract.SyncStream {
		return nil, nil //nolint:nilnil // the framework says when it is asked for the array
	}
	var mark *export.Mark
	var err error
	g.Unlocked(func() { mark, err = p.router.GPU.MarkAll(*r.array.Pointer) })
	return mark, err
}

// errCode says that what was asked for needs code of the program's, which must not run for it.
var errCode = &core.Error{Kind: core.ErrUnavailable, Err: errors.New("only code of the program's leads there")}

// errLong says that a lease takes longer than those who wait for a mailbox should.
var errLong = errors.New("this takes long")
