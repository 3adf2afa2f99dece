package program

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/program/names"
	"github.com/ndbridge/ndbridge/adapters/kit/program/published"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/export"
	"github.com/ndbridge/ndbridge/internal/suggest"
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
		return about("publish", "", "", err)
	}
	p.board.WithdrawStale(g, &p.published)
	t := published.Target{Object: o}
	err = g.Nested(func() error {
		f, plan, err := p.plan(g, o)
		if err != nil {
			return about("inspect", "", f.name, err)
		}
		r, err := p.look(g, o, f, &plan)
		if err != nil {
			return about("inspect", "", f.name, err)
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
		return about("publish", name, "", err)
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
			return nil, about("inspect", "", f.name, err)
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

// missingError says that a part of a name leads nowhere, which may change while the program runs.
type missingError struct {
	what  string
	meant string // a remedy, or ""
}

func (e *missingError) Error() string { return e.what }

// find follows a path to its object, which the scope holds. The caller closes it. What is not there is a
// *missingError.
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
		if o, err = p.global(g, path.Root); err != nil {
			return published.Target{}, err
		}
	}
	where := path.Root
	for _, s := range path.Steps {
		if o, err = follow(g, o, s, where); err != nil {
			return published.Target{}, err
		}
		where += s.String()
	}
	return published.Target{Object: o}, nil
}

// globals is the dict of the program's global variables.
func globals(g *py.GIL) (py.Object, error) {
	main, err := g.Main()
	if err != nil {
		return 0, err
	}
	return g.Attr(main, "__dict__")
}

func (p *Program) global(g *py.GIL, name string) (py.Object, error) {
	dict, err := globals(g)
	if err != nil {
		return 0, err
	}
	key, err := g.NewStr(name)
	if err != nil {
		return 0, err
	}
	o, ok, err := lookUp(g, dict, key)
	if ok || err != nil {
		return o, err
	}
	words, err := keys(g, dict)
	if err != nil {
		return 0, err
	}
	words = append(words, p.published.Names()...)
	return 0, &missingError{
		what:  "the program has no global variable, and has published nothing, of that name",
		meant: suggest.Remedy(name, slices.Values(words), ""),
	}
}

func follow(g *py.GIL, o py.Object, s names.Step, where string) (py.Object, error) {
	if s.Kind == names.Attr {
		return followAttr(g, o, s.Text, where)
	}
	key, err := key(g, s)
	if err != nil {
		return 0, err
	}
	if g.IsDict(o) {
		v, ok, err := lookUp(g, o, key)
		if ok || err != nil {
			return v, err
		}
		words, err := keys(g, o)
		if err != nil {
			return 0, err
		}
		return 0, &missingError{
			what:  fmt.Sprintf("%s has no key %s", where, s),
			meant: suggest.Remedy(s.Text, slices.Values(words), ""),
		}
	}
	v, err := g.Item(o, key)
	if raised(err, "KeyError") || raised(err, "IndexError") {
		missing := &missingError{what: fmt.Sprintf("%s has no %s", where, s)}
		if n, err := g.Len(o); err == nil {
			missing.what = fmt.Sprintf("%s has no %s, but a length of %d", where, s, n)
		}
		return 0, missing
	}
	if raised(err, "TypeError") {
		return 0, &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("%s is %s: %w", where, g.TypeName(o), err)}
	}
	return v, err
}

func key(g *py.GIL, s names.Step) (py.Object, error) {
	if s.Kind == names.Item {
		return g.NewInt(s.Item)
	}
	return g.NewStr(s.Text)
}

func followAttr(g *py.GIL, o py.Object, name, where string) (py.Object, error) {
	v, ok, err := g.AttrOK(o, name)
	if ok || err != nil {
		return v, err
	}
	missing := &missingError{what: fmt.Sprintf("%s, which is %s, has no attribute %s", where, g.TypeName(o), name)}
	if dict, ok, err := g.AttrOK(o, "__dict__"); ok && err == nil && g.IsDict(dict) {
		if words, err := keys(g, dict); err == nil {
			missing.meant = suggest.Remedy(name, slices.Values(words), "")
		}
	}
	return 0, missing
}

// lookUp is dict[key] without the side effects that a subclass of dict may have on a missing key.
func lookUp(g *py.GIL, dict, key py.Object) (o py.Object, ok bool, err error) {
	has, err := g.CallMethod(dict, "__contains__", []py.Object{key}, nil)
	if err != nil {
		return 0, false, err
	}
	if ok, err = g.Bool(has); !ok || err != nil {
		return 0, false, err
	}
	o, err = g.Item(dict, key)
	if raised(err, "KeyError") { // gone since, or a dict with ideas of its own
		return 0, false, nil
	}
	return o, err == nil, err
}

// maxSuggested bounds how many names are looked through for the one that was meant.
const maxSuggested = 1000

func keys(g *py.GIL, dict py.Object) ([]string, error) {
	items, err := g.DictItems(dict)
	if err != nil {
		return nil, err
	}
	var words []string
	for key := range items {
		if !g.IsStr(key) {
			continue
		}
		word, err := g.Text(key)
		if err != nil {
			return nil, err
		}
		if words = append(words, word); len(words) == maxSuggested {
			break
		}
	}
	return words, nil
}

// notFound says what became of a name in the end.
func notFound(err error) error {
	missing, ok := errors.AsType[*missingError](err)
	if !ok {
		return err
	}
	return &core.Error{Kind: core.ErrNotFound, Err: err, Remedy: missing.meant}
}
