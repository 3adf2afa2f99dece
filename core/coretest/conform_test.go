//go:build linux

package coretest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestConformReadOnlyFake runs the suite on a producer that refuses all writing.
func TestConformReadOnlyFake(t *testing.T) {
	t.Parallel()
	Conform(t, func(t *testing.T) core.Producer {
		arrays := Arrays()
		for i := range arrays {
			arrays[i].ReadOnly = true
		}
		return NewProducer(t, arrays...)
	})
}

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

// TestConformCatches breaks each clause, and wants the check of that clause to say so. It goes through
// all checks, so that none can be without a case.
func TestConformCatches(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	cases := map[string][]struct {
		want string
		bend func(*bent)
	}{
		"info": {
			{"process id", func(b *bent) {
				b.info = func(i core.Info, err error) (core.Info, error) { i.PID = 0; return i, err }
			}},
			{"no name", func(b *bent) {
				b.info = func(i core.Info, err error) (core.Info, error) { i.Plugin = ""; return i, err }
			}},
			{"-1 leases", func(b *bent) {
				b.info = func(i core.Info, err error) (core.Info, error) { i.Leases = -1; return i, err }
			}},
			{"not sorted", func(b *bent) {
				b.info = func(i core.Info, err error) (core.Info, error) {
					i.Frameworks = []core.Framework{{Name: "torch"}, {Name: "numpy"}}
					return i, err
				}
			}},
			{"other", func(b *bent) {
				b.info = func(i core.Info, _ error) (core.Info, error) { return i, other }
			}},
		},
		"info/context": {{"have none", func(b *bent) {
			b.info = func(i core.Info, _ error) (core.Info, error) { return i, nil }
		}}},
		"arrays": {
			{"not listed", func(b *bent) { b.arrays = without("counts") }},
			{"comes after", func(b *bent) { b.arrays = backwards }},
			{"has no name", func(b *bent) { b.arrays = renamed("columns", "") }},
			{"want shape", func(b *bent) { b.arrays = reshaped("samples", 24) }},
			{"not listed", func(b *bent) { b.arrays = failing("flags", other) }},
		},
		"arrays/break": {
			{"other", func(b *bent) { b.arrays = ending(other, 0) }},
			{"not listed", func(b *bent) { b.arrays = without("counts") }},
		},
		"arrays/context": {
			{"have none", func(b *bent) { b.arrays = without("") }},
			{"goes on", func(b *bent) { b.arrays = ending(context.Canceled, 2) }},
		},
		"lease/values": {
			{"values differ", func(b *bent) {
				b.lease = relabel("counts", func(s *core.LayoutSpec) { s.Offset -= 8 })
			}},
			{"want int64", func(b *bent) {
				b.lease = relabel("counts", func(s *core.LayoutSpec) { s.DType = core.Uint64 })
			}},
			{"want opaque", func(b *bent) { b.lease = relabel("dates", func(s *core.LayoutSpec) { s.Tag = "" }) }},
			{"invalid pointer", func(b *bent) {
				b.lease = relabel("picture", func(s *core.LayoutSpec) { s.Offset++ })
			}},
			{"segment of", func(b *bent) {
				b.lease = alter(func(l *core.Lease) {
					if s, ok := l.Handle.(core.Segment); ok {
						s.Size++
						l.Handle = s
					}
				})
			}},
			{"not sealed", func(b *bent) {
				b.lease = alter(func(l *core.Lease) {
					if s, ok := l.Handle.(core.Segment); ok {
						s.Sealed = true
						l.Handle = s
					}
				})
			}},
			{"lease columns: other", func(b *bent) {
				b.lease = func(string, core.Request, core.Lease, error) (core.Lease, error) {
					return core.Lease{}, other
				}
			}},
		},
		"lease/routes": {
			{"without an id", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.ID = 0 }) }},
			{"without a route", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Route = core.RouteNone }) }},
			{"with reason", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Route = core.RouteStaged }) }},
			{"handle", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Handle = nil }) }},
			{"without a fence", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Fence = nil }) }},
			{"nobody asked", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Writable = true }) }},
		},
		"lease/unknown": {
			{"have none", func(b *bent) { b.lease = always(nil) }},
			{`wraps "not found"`, func(b *bent) { b.lease = always(other) }},
			{"*core.Error", func(b *bent) { b.lease = always(core.ErrNotFound) }},
			{"names array", func(b *bent) { b.lease = always(&core.Error{Kind: core.ErrNotFound}) }},
			{"category", func(b *bent) {
				b.lease = always(&core.Error{Array: absent, Kind: core.ErrConfig, Err: core.ErrNotFound})
			}},
		},
		"lease/hostile-names": {
			{"was granted", func(b *bent) { b.lease = always(nil) }},
			{"want not found", func(b *bent) { b.lease = always(core.ErrPython) }},
		},
		"lease/context": {
			{"have none", func(b *bent) { b.lease = always(nil) }},
			{"expired", func(b *bent) { b.lease = always(context.Canceled) }},
		},
		"lease/waiting": {{"waiting for", func(b *bent) { b.lease = always(other) }}},
		"lease/copy-never": {
			{"was copied", func(b *bent) {
				b.lease = alter(func(l *core.Lease) { l.Route, l.Reason = core.RouteStaged, core.ReasonFrozen })
			}},
			{"memory cannot be shared", func(b *bent) { b.lease = always(other) }},
			{"without a reason", func(b *bent) { b.lease = always(core.ErrNotShared) }},
		},
		"lease/writable": {
			{"want it granted", func(b *bent) { b.lease = always(other) }},
			{"granted with", func(b *bent) { b.lease = alter(func(l *core.Lease) { l.Writable = false }) }},
			{"is not seen", func(b *bent) {
				b.lease = relabel("counts", func(s *core.LayoutSpec) { s.Offset -= 8 * b.round() })
			}},
		},
		"descriptor/unknown": {
			{"without a lease", func(b *bent) { b.descriptor = lending }},
			{"unknown segment", func(b *bent) { b.descriptor = refusing(other) }},
		},
		"descriptor/owned": {
			{"lent closed", func(b *bent) {
				b.descriptor = func(_ core.SegmentID, _ bool, f *os.File, err error) (*os.File, error) {
					return f, errors.Join(err, f.Close())
				}
			}},
			{"other", func(b *bent) { b.descriptor = refusing(other) }},
		},
		"descriptor/read-only": {
			{"though no lease", func(b *bent) { b.descriptor = lending }},
			{"without a writable lease", func(b *bent) { b.descriptor = refusing(other) }},
			{"can be mapped", func(b *bent) {
				b.descriptor = func(id core.SegmentID, writable bool, f *os.File, err error) (*os.File, error) {
					if writable {
						return f, err
					}
					return os.OpenFile(f.Name(), os.O_RDWR, 0)
				}
			}},
		},
		"descriptor/released": {
			{"is lent", func(b *bent) { b.descriptor = lending }},
			{"last release", func(b *bent) { b.descriptor = refusing(other) }},
		},
		"descriptor/context": {{"have none", func(b *bent) { b.descriptor = lending }}},
		"release/idempotent": {{"other", func(b *bent) {
			b.release = func(ctx context.Context, ids []core.LeaseID) error {
				if slices.Contains(ids, 0) {
					return other
				}
				return b.Producer.Release(ctx, ids...)
			}
		}}},
		"release/counts": {
			{"are counted", func(b *bent) { b.release = func(context.Context, []core.LeaseID) error { return nil } }},
			{"are counted", func(b *bent) {
				b.info = func(i core.Info, err error) (core.Info, error) { i.Leases = 0; return i, err }
			}},
			{"used twice", func(b *bent) {
				b.lease = alter(func(l *core.Lease) { l.ID = (l.ID-1)%core.LeaseID(len(Arrays())) + 1 })
			}},
		},
		"release/others": {{"another lease", func(b *bent) {
			b.release = func(ctx context.Context, ids []core.LeaseID) error {
				return b.Producer.Release(ctx, append(ids, 1, 2, 3)...)
			}
		}}},
		"concurrent": {
			{"at the end", func(b *bent) {
				b.release = func(ctx context.Context, ids []core.LeaseID) error {
					if ids[0]%7 == 0 {
						return nil
					}
					return b.Producer.Release(ctx, ids...)
				}
			}},
		},
	}
	for _, c := range checks() {
		if len(cases[c.name]) == 0 {
			t.Errorf("no case shows that the check %s can fail", c.name)
		}
		for _, tc := range cases[c.name] {
			t.Run(c.name+"/"+tc.want, func(t *testing.T) {
				t.Parallel()
				b := &bent{Producer: NewProducer(t, Arrays()...)}
				tc.bend(b)
				err := c.run(t.Context(), b)
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("want an error with %q, have %v", tc.want, err)
				}
			})
		}
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

// TestConcurrentLeases is the recipe for the fake itself, under the race detector.
func TestConcurrentLeases(t *testing.T) {
	t.Parallel()
	p := NewProducer(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l, err := p.Lease(t.Context(), fmt.Sprint("late", i), core.Request{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := p.Release(t.Context(), l.ID); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 8 {
		if err := p.Add(Array{Name: fmt.Sprint("late", i), DType: core.Uint8, Shape: []int{1}, Data: []byte{1}}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
