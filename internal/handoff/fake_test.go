package handoff

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a codec of leases that are no more than an ID and a text.
type plain struct{}

// Leases with these texts are those that a side cannot say, or that the other one refuses.
const (
	unsayable = "unsayable"
	refused   = "refused"
)

var errRefused = errors.New("not a lease that answers the request")

func (plain) Append(b []byte, l *contract.Lease) ([]byte, error) {
	if l.Framework == unsayable {
		return nil, errors.New(unsayable)
	}
	return append(binary.LittleEndian.AppendUint64(b, uint64(l.ID)), l.Framework...), nil
}

func (c plain) Lease(b []byte, req contract.Request) (contract.Lease, error) {
	id := c.ID(b)
	if id == 0 || string(b[8:]) == refused {
		return contract.Lease{}, errRefused
	}
	return contract.Lease{ID: id, Framework: string(b[8:]), Writable: req.Writable}, nil
}

func (plain) ID(b []byte) contract.LeaseID {
	if len(b) < 8 {
		return 0
	}
	return contract.LeaseID(binary.LittleEndian.Uint64(b))
}

// fake is a producer that grants what the test says, and counts what stands.
type fake struct {
	mu       sync.Mutex
	lease    func(ctx context.Context, name string) Look // nil: a lease whose text is the name
	refresh  func(id contract.LeaseID, only bool) Look   // nil: everything is as it was
	last     contract.LeaseID
	standing map[contract.LeaseID]bool
	calls    []call
}

// call is what the producer was asked for.
type call struct {
	names []string
	ids   []contract.LeaseID
	req   contract.Request
	only  bool
}

func (f *fake) Leases(ctx context.Context, names []string, req contract.Request, results []Look) []Look {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call{names: slices.Clone(names), req: req})
	lease := f.lease
	for _, name := range names {
		look := Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
		if lease != nil {
			f.mu.Unlock()
			look = lease(ctx, name)
			f.mu.Lock()
		}
		results = append(results, f.grant(look))
	}
	return results
}

func (f *fake) Refreshes(_ context.Context, ids []contract.LeaseID, only bool, results []Look) []Look {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refresh == nil { // without garbage
		for range ids {
			results = append(results, Look{Status: Unchanged})
		}
		return results
	}
	f.calls = append(f.calls, call{ids: slices.Clone(ids), only: only})
	for _, id := range ids {
		results = append(results, f.grant(f.refresh(id, only)))
	}
	return results
}

// grant gives a lease a number, unless it is nobody's.
func (f *fake) grant(look Look) Look {
	if look.Lease == nil {
		return look
	}
	f.last++
	look.Lease.ID = f.last
	if f.standing == nil {
		f.standing = make(map[contract.LeaseID]bool)
	}
	f.standing[f.last] = true
	return look
}

func (f *fake) Release(_ context.Context, ids ...contract.LeaseID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.standing, id)
	}
	return errors.New("nobody hears this")
}

// finds sets what becomes of leases from now on.
func (f *fake) finds(refresh func(id contract.LeaseID, only bool) Look) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh = refresh
}

func (f *fake) leases() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.standing)
}

// took gives what was asked for since the last time.
func (f *fake) took() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// offering is a fake with a table of offers.
type offering struct {
	fake
	writer *offers.Writer
}

func (o *offering) Offers(w *offers.Writer, _ Codec) { o.writer = w }

// releaser is a producer that leases are given back to.
type releaser interface {
	Producer
	Release(ctx context.Context, ids ...contract.LeaseID) error
}

// connect joins a client to a server, as an opened session does, but for that it waits for answers as long as
// a busy machine may need.
func connect(tb testing.TB, p releaser, s Settings) *Client {
	tb.Helper()
	return connectFor(tb, p, s, time.Minute)
}

// connectFor is connect with a client that waits for answers as long as limit.
func connectFor(tb testing.TB, p releaser, s Settings, limit time.Duration) *Client {
	tb.Helper()
	server, err := NewServer(p, p.Release, plain{}, s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	file, err := server.Open(Segment)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	stray := func(id contract.LeaseID) { _ = p.Release(context.Background(), id) } //nolint:usetesting // also when the test ends
	client, err := newClient(file, server.Memory(), plain{}, s.Spin, limit, stray)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Error(err)
		}
	})
	return client
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// leaseAll leases what has these names.
func leaseAll(t *testing.T, c *Client, names ...string) ([]Look, error) {
	t.Helper()
	results := make([]Look, len(names))
	return results, c.Leases(t.Context(), names, contract.Request{}, results)
}

// refreshAll looks again at leases that were granted for nothing special.
func refreshAll(t *testing.T, c *Client, only bool, ids ...contract.LeaseID) ([]Look, error) {
	t.Helper()
	results := make([]Look, len(ids))
	return results, c.Refresh(t.Context(), ids, make([]contract.Request, len(ids)), only, false, results)
}

// lease is the lease of a look, or the zero value.
func (l Look) lease() (lease contract.Lease) {
	if l.Lease != nil {
		lease = *l.Lease
	}
	return lease
}
