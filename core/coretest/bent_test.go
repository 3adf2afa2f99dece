package coretest

import (
	"context"
	"iter"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
)

// A bent producer breaks one clause of the contract.
type bent struct {
	*Producer
	info       func(core.Info, error) (core.Info, error)
	arrays     func(context.Context, iter.Seq2[core.Entry, error]) iter.Seq2[core.Entry, error]
	lease      func(name string, req core.Request, l core.Lease, err error) (core.Lease, error)
	descriptor func(id core.SegmentID, writable bool, f *os.File, err error) (*os.File, error)
	release    func(context.Context, []core.LeaseID) error
}

func (b *bent) Info(ctx context.Context) (core.Info, error) {
	i, err := b.Producer.Info(ctx)
	if b.info != nil {
		return b.info(i, err)
	}
	return i, err
}

func (b *bent) Arrays(ctx context.Context) iter.Seq2[core.Entry, error] {
	if b.arrays != nil {
		return b.arrays(ctx, b.Producer.Arrays(ctx))
	}
	return b.Producer.Arrays(ctx)
}

func (b *bent) Lease(ctx context.Context, name string, req core.Request) (core.Lease, error) {
	l, err := b.Producer.Lease(ctx, name, req)
	if b.lease != nil {
		return b.lease(name, req, l, err)
	}
	return l, err
}

func (b *bent) Descriptor(ctx context.Context, id core.SegmentID, writable bool) (*os.File, error) {
	f, err := b.Producer.Descriptor(ctx, id, writable)
	if b.descriptor != nil {
		return b.descriptor(id, writable, f, err)
	}
	return f, err
}

func (b *bent) Release(ctx context.Context, ids ...core.LeaseID) error {
	if b.release != nil {
		return b.release(ctx, ids)
	}
	return b.Producer.Release(ctx, ids...)
}

// relabel changes the layout of one array's leases.
func relabel(name string, change func(*core.LayoutSpec)) func(string, core.Request, core.Lease, error) (core.Lease, error) {
	return func(n string, _ core.Request, l core.Lease, err error) (core.Lease, error) {
		if err == nil && n == name {
			spec := l.Layout.Spec()
			change(&spec)
			l.Layout, err = core.NewLayout(spec)
		}
		return l, err
	}
}

// alter changes every lease.
func alter(change func(*core.Lease)) func(string, core.Request, core.Lease, error) (core.Lease, error) {
	return func(_ string, _ core.Request, l core.Lease, err error) (core.Lease, error) {
		if err == nil {
			change(&l)
		}
		return l, err
	}
}

// round counts the leases: 1 for every second one.
func (b *bent) round() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.last % 2)
}

func always(err error) func(string, core.Request, core.Lease, error) (core.Lease, error) {
	return func(_ string, _ core.Request, l core.Lease, _ error) (core.Lease, error) { return l, err }
}

func refusing(err error) func(core.SegmentID, bool, *os.File, error) (*os.File, error) {
	return func(_ core.SegmentID, _ bool, f *os.File, _ error) (*os.File, error) {
		if f != nil {
			_ = f.Close()
		}
		return nil, err
	}
}

// lending lends any file to anybody.
func lending(core.SegmentID, bool, *os.File, error) (*os.File, error) { return os.Open(os.DevNull) }

type listing = func(context.Context, iter.Seq2[core.Entry, error]) iter.Seq2[core.Entry, error]

// entries is a listing of what is left of another after a change. It minds no context.
func entries(change func([]core.Entry) []core.Entry) listing {
	return func(_ context.Context, seq iter.Seq2[core.Entry, error]) iter.Seq2[core.Entry, error] {
		return func(yield func(core.Entry, error) bool) {
			var all []core.Entry
			for e := range seq {
				all = append(all, e)
			}
			for _, e := range change(all) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func without(name string) listing {
	return entries(func(all []core.Entry) []core.Entry {
		return slices.DeleteFunc(all, func(e core.Entry) bool { return e.Name == name })
	})
}

func backwards(ctx context.Context, seq iter.Seq2[core.Entry, error]) iter.Seq2[core.Entry, error] {
	return entries(func(all []core.Entry) []core.Entry { slices.Reverse(all); return all })(ctx, seq)
}

func edited(name string, edit func(*core.Entry)) listing {
	return entries(func(all []core.Entry) []core.Entry {
		for i := range all {
			if all[i].Name == name {
				edit(&all[i])
			}
		}
		return all
	})
}

func renamed(from, to string) listing { return edited(from, func(e *core.Entry) { e.Name = to }) }

func failing(name string, err error) listing {
	return edited(name, func(e *core.Entry) { e.Err = err })
}

func reshaped(name string, shape ...int) listing {
	return edited(name, func(e *core.Entry) {
		spec := e.Layout.Spec()
		spec.Shape, spec.Strides = shape, nil
		e.Layout, _ = core.NewLayout(spec)
	})
}

// ending lists one error and then more entries.
func ending(err error, more int) listing {
	return func(context.Context, iter.Seq2[core.Entry, error]) iter.Seq2[core.Entry, error] {
		return func(yield func(core.Entry, error) bool) {
			ok := yield(core.Entry{}, err)
			for range more {
				ok = ok && yield(core.Entry{}, err)
			}
		}
	}
}
