//go:build linux

package coretest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestConformReadOnlyFake runs the suite on a producer that refuses all writing.
func TestConformReadOnlyFake(t *testing.T) {
	t.Parallel()
	Conform(t, func(t *testing.T) contract.Producer {
		arrays := Arrays()
		for i := range arrays {
			arrays[i].ReadOnly = true
		}
		return NewProducer(t, arrays...)
	})
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
				b.info = func(i contract.Info, err error) (contract.Info, error) { i.PID = 0; return i, err }
			}},
			{"no name", func(b *bent) {
				b.info = func(i contract.Info, err error) (contract.Info, error) { i.Plugin = ""; return i, err }
			}},
			{"-1 leases", func(b *bent) {
				b.info = func(i contract.Info, err error) (contract.Info, error) { i.Leases = -1; return i, err }
			}},
			{"not sorted", func(b *bent) {
				b.info = func(i contract.Info, err error) (contract.Info, error) {
					i.Frameworks = []contract.Framework{{Name: "torch"}, {Name: "numpy"}}
					return i, err
				}
			}},
			{"other", func(b *bent) {
				b.info = func(i contract.Info, _ error) (contract.Info, error) { return i, other }
			}},
		},
		"info/context": {{"have none", func(b *bent) {
			b.info = func(i contract.Info, _ error) (contract.Info, error) { return i, nil }
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
				b.lease = alter(func(l *contract.Lease) {
					if s, ok := l.Handle.(contract.Segment); ok {
						s.Size++
						l.Handle = s
					}
				})
			}},
			{"not sealed", func(b *bent) {
				b.lease = alter(func(l *contract.Lease) {
					if s, ok := l.Handle.(contract.Segment); ok {
						s.Sealed = true
						l.Handle = s
					}
				})
			}},
			{"lease columns: other", func(b *bent) {
				b.lease = func(string, contract.Request, contract.Lease, error) (contract.Lease, error) {
					return contract.Lease{}, other
				}
			}},
		},
		"lease/routes": {
			{"without an id", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.ID = 0 }) }},
			{"without a route", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Route = "" }) }},
			{"with reason", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Route = contract.RouteStaged }) }},
			{"handle", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Handle = nil }) }},
			{"without a fence", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Fence = nil }) }},
			{"nobody asked", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Writable = true }) }},
		},
		"lease/unknown": {
			{"have none", func(b *bent) { b.lease = always(nil) }},
			{`wraps "not found"`, func(b *bent) { b.lease = always(other) }},
			{"*core.Error", func(b *bent) { b.lease = always(core.ErrNotFound) }},
			{"names array", func(b *bent) { b.lease = always(&core.Error{Kind: core.ErrNotFound}) }},
			{"category", func(b *bent) {
				b.lease = always(&core.Error{Object: absent, Kind: core.ErrConfig, Err: core.ErrNotFound})
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
				b.lease = alter(func(l *contract.Lease) { l.Route, l.Reason = contract.RouteStaged, contract.ReasonFrozen })
			}},
			{"memory cannot be shared", func(b *bent) { b.lease = always(other) }},
			{"without a reason", func(b *bent) { b.lease = always(core.ErrNotShared) }},
		},
		"lease/writable": {
			{"want it granted", func(b *bent) { b.lease = always(other) }},
			{"granted with", func(b *bent) { b.lease = alter(func(l *contract.Lease) { l.Writable = false }) }},
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
				b.descriptor = func(_ contract.SegmentID, _ bool, f *os.File, err error) (*os.File, error) {
					return f, errors.Join(err, f.Close())
				}
			}},
			{"other", func(b *bent) { b.descriptor = refusing(other) }},
		},
		"descriptor/read-only": {
			{"though no lease", func(b *bent) { b.descriptor = lending }},
			{"without a writable lease", func(b *bent) { b.descriptor = refusing(other) }},
			{"can be mapped", func(b *bent) {
				b.descriptor = func(_ contract.SegmentID, writable bool, f *os.File, err error) (*os.File, error) {
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
			b.release = func(ctx context.Context, ids []contract.LeaseID) error {
				if slices.Contains(ids, 0) {
					return other
				}
				return b.Producer.Release(ctx, ids...)
			}
		}}},
		"release/counts": {
			{"are counted", func(b *bent) { b.release = func(context.Context, []contract.LeaseID) error { return nil } }},
			{"are counted", func(b *bent) {
				b.info = func(i contract.Info, err error) (contract.Info, error) { i.Leases = 0; return i, err }
			}},
			{"used twice", func(b *bent) {
				b.lease = alter(func(l *contract.Lease) { l.ID = (l.ID-1)%contract.LeaseID(len(Arrays())) + 1 })
			}},
		},
		"release/others": {{"another lease", func(b *bent) {
			b.release = func(ctx context.Context, ids []contract.LeaseID) error {
				return b.Producer.Release(ctx, append(ids, 1, 2, 3)...)
			}
		}}},
		"concurrent": {
			{"at the end", func(b *bent) {
				b.release = func(ctx context.Context, ids []contract.LeaseID) error {
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

// TestConcurrentLeases is the recipe for the fake itself, under the race detector.
func TestConcurrentLeases(t *testing.T) {
	t.Parallel()
	p := NewProducer(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l, err := p.Lease(t.Context(), fmt.Sprint("late", i), contract.Request{})
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
