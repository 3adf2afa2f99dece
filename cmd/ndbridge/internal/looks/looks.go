// Package looks has package watch look at what a session names.
package looks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// Arrays are the arrays of a session, as package watch looks at them: it knows each by its [hostplugin.Source].
type Arrays struct {
	session *hostplugin.Session
	opts    []hostplugin.ViewOption
	left    atomic.Bool
}

// Of gives a session's arrays. A name that does not exist yet is not waited for: the next look comes soon enough.
func Of(s *hostplugin.Session, opts ...hostplugin.ViewOption) *Arrays {
	return &Arrays{session: s, opts: append(opts, hostplugin.NoWait())}
}

// Array gives the array of a name, under the same name. The error is one of the name.
func (a *Arrays) Array(name string) (watch.Array, error) {
	source, err := a.session.Source(name)
	return watch.Array{Name: name, Program: a, Of: source}, err
}

// Leave says that the program is gone: arrays that were looked at, and not copied, are looked at as it has left them.
func (a *Arrays) Leave() { a.left.Store(true) }

// wasLeft reports whether a view shows what a program that is gone has left: neither a copy does, nor memory that a fork has made private.
func wasLeft(v *core.View) bool {
	if v == nil {
		return false
	}
	l, ok := v.Lender().(interface{ Left() bool })
	return ok && l.Left()
}

// Refresh implements [watch.Program].
func (a *Arrays) Refresh(ctx context.Context, looks []watch.Look) {
	all := make([]hostplugin.Look, len(looks))
	for i, l := range looks {
		source, _ := l.Of.(*hostplugin.Source) // it is, by Array
		all[i] = hostplugin.Look{Source: source, View: l.View}
	}
	a.session.Refresh(ctx, all, a.opts...)
	for i, l := range all {
		if l.Err == nil || a.left.Load() && wasLeft(l.View) {
			l.Err = l.View.Wait(ctx)
		}
		looks[i].View, looks[i].Err = l.View, l.Err
	}
}

// Program is what arrays are listed of: a hostplugin.Session.
type Program interface {
	Arrays(ctx context.Context) iter.Seq2[contract.Entry, error]
	Producer() contract.Producer
}

// Variables lists the arrays that are variables, or were published. After an error, those that came before it are there.
func Variables(ctx context.Context, p Program) (entries []contract.Entry, err error) {
	for e, err := range p.Arrays(ctx) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Search lists what a program has. The error wraps core.ErrUnsupported if the program cannot be searched.
func Search(ctx context.Context, p Program, of contract.Search) (contract.Found, error) {
	searcher, ok := p.Producer().(contract.Searcher)
	if !ok {
		return contract.Found{}, &core.Error{Op: "list", Kind: core.ErrUnsupported, Err: errors.New("the program cannot be searched")}
	}
	return searcher.Search(ctx, of)
}

// Below is the pattern of all arrays that a name leads to.
func Below(name string) string { return name + "." + names.Every }

// Join puts variables behind what was found, if it does not have them. Of those that it has they say what they are now: programs are searched more rarely
// than their variables are listed.
func Join(found contract.Found, variables []contract.Entry, limit int) contract.Found {
	there, also := make(map[string]int), make(map[string]bool)
	for i, e := range found.Entries {
		there[e.Name] = i
		for _, name := range e.Also {
			also[name] = true
		}
	}
	found.Entries = slices.Clone(found.Entries)
	for _, e := range variables {
		switch i, ok := there[e.Name]; {
		case ok:
			old := &found.Entries[i]
			old.Framework, old.Published, old.Layout, old.Err = e.Framework, e.Published, e.Layout, e.Err
		case also[e.Name]:
		case len(found.Entries) < limit:
			found.Entries = append(found.Entries, e)
		default:
			found.More++
		}
	}
	return found
}

// Counter reads the count of a program's steps: a number of Python's, or an array of one element.
type Counter struct {
	session *hostplugin.Session
	name    string
	arrays  *Arrays
	array   watch.Array
	view    *core.View
	plain   bool // it is a number of Python's
	known   bool // it could be read once
	never   atomic.Pointer[error]
}

// NewCounter reads the count of that name. The error is one of the name.
func NewCounter(s *hostplugin.Session, name string) (*Counter, error) {
	arrays := Of(s)
	array, err := arrays.Array(name)
	return &Counter{session: s, name: name, arrays: arrays, array: array}, err
}

// Leave is that of [Arrays].
func (c *Counter) Leave() { c.arrays.Leave() }

// Count gives the count as it is now, and nil if it cannot be read. One goroutine calls it at a time.
func (c *Counter) Count(ctx context.Context) *stats.Number {
	x, err := c.read(ctx)
	if err != nil {
		if !c.known && ctx.Err() == nil { // that nobody waited for it any more is no reason
			c.never.Store(&err)
		}
		return nil
	}
	c.known = true
	c.never.Store(nil)
	return new(stats.Number(x))
}

// Err says why no count was known, ever.
func (c *Counter) Err() error {
	if err := c.never.Load(); err != nil {
		return *err
	}
	return nil
}

// read reads what the count was at last, and else whatever it is now.
func (c *Counter) read(ctx context.Context) (x float64, err error) {
	if c.plain {
		if x, err = c.number(ctx, patience); err == nil {
			return x, nil
		}
	}
	x, err = c.element(ctx)
	if c.plain = errors.Is(err, core.ErrUnsupported); c.plain { // so the name is there
		x, err = c.number(ctx, longPatience)
		c.plain = err == nil
	}
	return x, err
}

func (c *Counter) element(ctx context.Context) (float64, error) {
	looks := []watch.Look{{Of: c.array.Of, View: c.view}}
	c.array.Program.Refresh(ctx, looks)
	c.view = looks[0].View // the session closes it
	if err := looks[0].Err; err != nil {
		return 0, err
	}
	sum, err := stats.Of(ctx, c.view, &stats.Options{Workers: 1})
	if err == nil && (sum.Finite() != 1 || sum.Len != 1) {
		err = fmt.Errorf("step %s: expected one number, got %d elements, %d of them finite", c.name, sum.Len, sum.Finite())
	}
	if err != nil {
		return 0, err
	}
	return sum.Mean, nil
}

// patience is how long the program may take to say its count: it would wait for a name that is gone. One that has a name may be busy for longer.
const (
	patience     = time.Second
	longPatience = 10 * time.Second
)

func (c *Counter) number(ctx context.Context, patience time.Duration) (x float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := c.session.Value(ctx, c.name)
	if err != nil {
		return 0, err
	}
	err = result.Decode(&x)
	return x, errors.Join(err, result.Close())
}
