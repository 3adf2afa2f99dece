package coretest

import (
	"context"
	"iter"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// A bent producer breaks one clause of the contract.
type bent struct {
	*Producer
	info       func(contract.Info, error) (contract.Info, error)
	arrays     func(context.Context, iter.Seq2[contract.Entry, error]) iter.Seq2[contract.Entry, error]
	lease      func(name string, req contract.Request, l contract.Lease, err error) (contract.Lease, error)
	descriptor func(id contract.SegmentID, writable bool, f *os.File, err error) (*os.File, error)
	release    func(context.Context, []contract.LeaseID) error
}

func (b *bent) Info(ctx context.Context) (contract.Info, error) {
	i, err := b.Producer.Info(ctx)
	if b.info != nil {
		return b.info(i, err)
	}
	return i, err
}

func (b *bent) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	if b.arrays != nil {
		return b.arrays(ctx, b.Producer.Arrays(ctx))
	}
	return b.Producer.Arrays(ctx)
}

func (b *bent) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	l, err := b.Producer.Lease(ctx, name, req)
	if b.lease != nil {
		return b.lease(name, req, l, err)
	}
	return l, err
}

func (b *bent) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	f, err := b.Producer.Descriptor(ctx, id, writable)
	if b.descriptor != nil {
		return b.descriptor(id, writable, f, err)
	}
	return f, err
}

func (b *bent) Release(ctx context.Context, ids ...contract.LeaseID) error {
	if b.release != nil {
		return b.release(ctx, ids)
	}
	return b.Producer.Release(ctx, ids...)
}

// relabel changes the layout of one array's leases.
func relabel(name string, change func(*core.LayoutSpec)) func(string, contract.Request, contract.Lease, error) (contract.Lease, error) {
	return func(n string, _ contract.Request, l contract.Lease, err error) (contract.Lease, error) {
		if err == nil && n == name {
			spec := l.Layout.Spec()
			change(&spec)
			l.Layout, err = core.NewLayout(spec)
		}
		return l, err
	}
}

// alter changes every lease.
func alter(change func(*contract.Lease)) func(string, contract.Request, contract.Lease, error) (contract.Lease, error) {
	return func(_ string, _ contract.Request, l contract.Lease, err error) (contract.Lease, error) {
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

func always(err error) func(string, contract.Request, contract.Lease, error) (contract.Lease, error) {
	return func(_ string, _ contract.Request, l contract.Lease, _ error) (contract.Lease, error) { return l, err }
}

func refusing(err error) func(contract.SegmentID, bool, *os.File, error) (*os.File, error) {
	return func(_ contract.SegmentID, _ bool, f *os.File, _ error) (*os.File, error) {
		if f != nil {
			_ = f.Close()
		}
		return nil, err
	}
}

// lending lends any file to anybody.
func lending(contract.SegmentID, bool, *os.File, error) (*os.File, error) { return os.Open(os.DevNull) }

type listing = func(context.Context, iter.Seq2[contract.Entry, error]) iter.Seq2[contract.Entry, error]

// entries is a listing of what is left of another after a change. It minds no context.
func entries(change func([]contract.Entry) []contract.Entry) listing {
	return func(_ context.Context, seq iter.Seq2[contract.Entry, error]) iter.Seq2[contract.Entry, error] {
		return func(yield func(contract.Entry, error) bool) {
			var all []contract.Entry
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
	return entries(func(all []contract.Entry) []contract.Entry {
		return slices.DeleteFunc(all, func(e contract.Entry) bool { return e.Name == name })
	})
}

func backwards(ctx context.Context, seq iter.Seq2[contract.Entry, error]) iter.Seq2[contract.Entry, error] {
	return entries(func(all []contract.Entry) []contract.Entry { slices.Reverse(all); return all })(ctx, seq)
}

func edited(name string, edit func(*contract.Entry)) listing {
	return entries(func(all []contract.Entry) []contract.Entry {
		for i := range all {
			if all[i].Name == name {
				edit(&all[i])
			}
		}
		return all
	})
}

func renamed(from, to string) listing { return edited(from, func(e *contract.Entry) { e.Name = to }) }

func failing(name string, err error) listing {
	return edited(name, func(e *contract.Entry) { e.Err = err })
}

func reshaped(name string, shape ...int) listing {
	return edited(name, func(e *contract.Entry) {
		spec := e.Layout.Spec()
		spec.Shape, spec.Strides = shape, nil
		e.Layout, _ = core.NewLayout(spec)
	})
}

// ending lists one error and then more entries.
func ending(err error, more int) listing {
	return func(context.Context, iter.Seq2[contract.Entry, error]) iter.Seq2[contract.Entry, error] {
		return func(yield func(contract.Entry, error) bool) {
			ok := yield(contract.Entry{}, err)
			for range more {
				ok = ok && yield(contract.Entry{}, err)
			}
		}
	}
}
