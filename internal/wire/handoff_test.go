package wire_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// batching is a producer that answers the mailbox itself.
type batching struct {
	*coretest.Producer
	results []handoff.Look // of Refreshes
}

func (b *batching) Mailbox() handoff.Producer { return b }

func (b *batching) Leases(ctx context.Context, names []string, req contract.Request, results []handoff.Look) []handoff.Look {
	for _, name := range names {
		l, err := b.Lease(ctx, name, req)
		if err != nil {
			results = append(results, handoff.Look{})
			continue
		}
		results = append(results, handoff.Look{Status: handoff.Changed, Lease: &l})
	}
	return results
}

func (b *batching) Refreshes(_ context.Context, _ []contract.LeaseID, _ bool, results []handoff.Look) []handoff.Look {
	return append(results, b.results...)
}

// offering is a producer that offers leases, too.
type offering struct {
	batching
	writer chan *offers.Writer
}

func (o *offering) Mailbox() handoff.Producer { return o }

func (o *offering) Offers(w *offers.Writer, _ handoff.Codec) { o.writer <- w }

// openHandoff opens the memory that a link's session has.
func openHandoff(t *testing.T, link *wiretest.Link) *handoff.Client {
	t.Helper()
	stray := func(id contract.LeaseID) { _ = link.Client.Release(context.Background(), id) } //nolint:usetesting // also when the test ends
	c, err := link.Client.OpenHandoff(t.Context(), time.Millisecond, stray)
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return c
}

// TestHandoff: the mailbox has the same leases as the calls have, of any producer, and those that are given back
// by one way are by the other.
func TestHandoff(t *testing.T) {
	t.Parallel()
	arrays := coretest.NewProducer(t, coretest.Arrays()...)
	able := &batching{Producer: arrays, results: []handoff.Look{{Status: handoff.Unchanged}}}
	offerer := &offering{batching: *able, writer: make(chan *offers.Writer, 2)}
	for name, tt := range map[string]struct {
		producer contract.Producer
		look     handoff.Status
		offers   bool
	}{
		"a producer": {arrays, handoff.Ask, false},
		"an able":    {able, handoff.Unchanged, false},
		"an offerer": {offerer, handoff.Unchanged, true},
	} {
		link := wiretest.Dial(t, tt.producer, wiretest.Options{Handoff: handoff.Settings{Slots: 2, Spin: time.Millisecond}})
		c := openHandoff(t, link)
		if c == nil || (c.Offers != nil) != tt.offers {
			t.Fatalf("%s: %+v", name, c)
		}
		results := make([]handoff.Look, 2)
		eventually(t, func() error { // a busy machine
			return c.Leases(t.Context(), []string{"samples", "nothing"}, contract.Request{NoWait: true}, results)
		})
		byMail := results[0].Lease
		if results[0].Status != handoff.Changed || results[1].Status != handoff.Ask {
			t.Fatalf("%s: %+v", name, results)
		}
		byCall, err := link.Client.Lease(t.Context(), "samples", contract.Request{})
		if err != nil || byCall.ID == byMail.ID || byCall.Handle != byMail.Handle || !byCall.Layout.Equal(byMail.Layout) {
			t.Errorf("%s: by the mailbox %+v, by a call %+v, %v", name, byMail, byCall, err)
		}
		look := make([]handoff.Look, 1)
		eventually(t, func() error {
			return c.Refresh(t.Context(), []contract.LeaseID{byMail.ID}, make([]contract.Request, 1), false, false, look)
		})
		if look[0].Status != tt.look {
			t.Errorf("%s: %+v", name, look)
		}
		if err := link.Client.Release(t.Context(), byMail.ID); err != nil {
			t.Error(err)
		}
		eventually(t, func() error { return c.Release(t.Context(), byCall.ID) })
		eventually(t, func() error { return leases(t, arrays, 0) })
	}
}

// TestNoHandoff: without a wish there is none, and what cannot be wished for is refused.
func TestNoHandoff(t *testing.T) {
	t.Parallel()
	p := coretest.NewProducer(t)
	if c := openHandoff(t, wiretest.Dial(t, p, wiretest.Options{})); c != nil {
		t.Error("a mailbox that nobody has wished for")
	}
	for _, wish := range []handoff.Settings{{Slots: -1}, {Slots: 65}, {Slots: 1, Spin: -1}, {Slots: 1, Spin: time.Hour}} {
		link := wiretest.Dial(t, p, wiretest.Options{Closed: true})
		if _, err := link.Client.Open(t.Context(), contract.Settings{}, wire.Wish{Handoff: wish}); !errors.Is(err, core.ErrProtocol) && !errors.Is(err, core.ErrConfig) {
			t.Errorf("Open with %+v = %v", wish, err)
		}
	}
}
