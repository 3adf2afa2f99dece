package handoff

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a producer whose Lease is the test's, and which counts what stands.
type fake struct {
	mu       sync.Mutex
	lease    func(ctx context.Context, name string, req core.Request) (core.Lease, error)
	last     core.LeaseID
	standing map[core.LeaseID]bool
	names    []string
}

func (f *fake) Lease(ctx context.Context, name string, req core.Request) (core.Lease, error) {
	f.mu.Lock()
	grant := f.lease
	f.mu.Unlock()
	l, err := grant(ctx, name, req)
	if err != nil {
		return l, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	l.ID = f.last
	if f.standing == nil {
		f.standing = make(map[core.LeaseID]bool)
	}
	f.standing[l.ID] = true
	if len(f.names) < 100 {
		f.names = append(f.names, name)
	}
	return l, nil
}

func (f *fake) Release(_ context.Context, ids ...core.LeaseID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		delete(f.standing, id)
	}
	return nil
}

func (f *fake) leases() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.standing)
}

// nothing is pending in it, and it takes back what was not given back.
type nothing struct{}

func (nothing) Take(buf []core.LeaseID) ([]core.LeaseID, int) { return buf, 0 }
func (nothing) Taken([]core.LeaseID, int, bool)               {}

// connect joins a client to a server, as an opened session does, but for that it
// waits for answers as long as a busy machine may need.
func connect(tb testing.TB, p Leaser, s Settings) *Client {
	tb.Helper()
	return connectFor(tb, p, s, time.Minute)
}

// connectFor is connect with a client that waits for answers as long as limit.
func connectFor(tb testing.TB, p Leaser, s Settings, limit time.Duration) *Client {
	tb.Helper()
	server, err := NewServer(p, s)
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
	stray := func(id core.LeaseID) { _ = p.Release(tb.Context(), id) }
	client, err := newClient(file, server.Ring(), s.Spin, limit, stray)
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
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func granting(l core.Lease) func(context.Context, string, core.Request) (core.Lease, error) {
	return func(context.Context, string, core.Request) (core.Lease, error) { return l, nil }
}

// TestNamesTravelOnce: the producer hears the same name each time, and a later one by its own number.
func TestNamesTravelOnce(t *testing.T) {
	t.Parallel()
	p := &fake{lease: granting(examples()["segment"])}
	c := connect(t, p, Settings{Lanes: 2})
	a, b := c.Source("a"), c.Source("model.weight")
	for _, s := range []*Source{a, a, b, a, b, c.Named("once"), c.Named("once")} {
		if _, err := c.Lease(t.Context(), s, core.Request{}, nothing{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a", "a", "model.weight", "a", "model.weight", "once", "once"}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.names, want) || !a.known.Load() || !b.known.Load() {
		t.Errorf("names = %q, want %q", p.names, want)
	}
}

// TestWhatIsForGRPC: errors, names that are not there, and what has no room.
func TestWhatIsForGRPC(t *testing.T) {
	t.Parallel()
	long := examples()["segment"]
	long.Framework = strings.Repeat("x", ring.MaxAnswer)
	p := &fake{}
	c := connect(t, p, Settings{Lanes: 2})
	for name, lease := range map[string]func(context.Context, string, core.Request) (core.Lease, error){
		"a long text": granting(long),
		"no fence":    granting(core.Lease{}),
		"an error": func(_ context.Context, _ string, req core.Request) (core.Lease, error) {
			if !req.NoWait {
				return examples()["segment"], nil
			}
			return core.Lease{}, core.ErrNotFound
		},
		"a busy program": func(ctx context.Context, _ string, _ core.Request) (core.Lease, error) {
			<-ctx.Done()
			return examples()["segment"], ctx.Err() // a lease that does not count
		},
	} {
		p.mu.Lock()
		p.lease = lease
		p.mu.Unlock()
		if _, err := c.Lease(t.Context(), c.Source("x"), core.Request{}, nothing{}); !errors.Is(err, ErrAsk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	name := strings.Repeat("x", MaxName+1)
	if _, err := c.Lease(t.Context(), c.Source(name), core.Request{}, nothing{}); !errors.Is(err, ErrAsk) {
		t.Errorf("a long name: %v", err)
	}
	if n := p.leases(); n != 0 {
		t.Errorf("%d leases stand", n)
	}
}

// TestBusyProgramsAreLeftAlone: what took the ring long is not asked of it again at once.
func TestBusyProgramsAreLeftAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := connect(t, &fake{lease: func(ctx context.Context, _ string, _ core.Request) (core.Lease, error) {
		asked.Add(1)
		<-ctx.Done()
		return examples()["segment"], ctx.Err() // a lease that does not count
	}}, Settings{Lanes: 1})
	source := c.Source("x")
	for range 100 {
		if _, err := c.Lease(t.Context(), source, core.Request{}, nothing{}); !errors.Is(err, ErrAsk) {
			t.Errorf("Lease = %v", err)
		}
	}
	if n := asked.Load(); n > 10 {
		t.Errorf("100 leases asked %d times", n)
	}
	eventually(t, "it is asked again", func() bool {
		before := asked.Load()
		_, err := c.Lease(t.Context(), source, core.Request{}, nothing{})
		return errors.Is(err, ErrAsk) && asked.Load() > before
	})
}

// TestAbandoned: a lease that comes when nobody waits for it any more is given back.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	var wait sync.WaitGroup
	wait.Add(1)
	begun := make(chan struct{}, 1)
	p := &fake{lease: func(context.Context, string, core.Request) (core.Lease, error) {
		begun <- struct{}{}
		wait.Wait() // whatever the context says
		return examples()["segment"], nil
	}}
	c := connectFor(t, p, Settings{Lanes: 1}, callLimit)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := c.Lease(ctx, c.Source("x"), core.Request{}, nothing{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Lease = %v", err)
	}
	if _, err := c.Lease(t.Context(), c.Source("y"), core.Request{}, nothing{}); !errors.Is(err, ErrAsk) {
		t.Errorf("Lease of a program that does not answer = %v", err)
	}
	wait.Done()
	eventually(t, "the lease was granted, and given back", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last == 1 && len(p.standing) == 0
	})
}

func TestReleases(t *testing.T) {
	t.Parallel()
	p := &fake{lease: granting(examples()["segment"])}
	c := connect(t, p, Settings{Lanes: 1})
	source := c.Source("x")
	var ids []core.LeaseID
	for range 2*MaxReleases + 3 {
		l, err := c.Lease(t.Context(), source, core.Request{}, nothing{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	if err := c.Release(t.Context(), ids...); err != nil || p.leases() != 0 {
		t.Errorf("Release = %v; %d leases stand", err, p.leases())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Release(t.Context(), 1); !errors.Is(err, ErrAsk) {
		t.Errorf("Release after Close = %v", err)
	}
	if _, err := c.Lease(t.Context(), source, core.Request{}, nothing{}); !errors.Is(err, ErrAsk) {
		t.Errorf("Lease after Close = %v", err)
	}
}

// TestManyCallers: each gets what it asked for.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	p := &fake{lease: func(_ context.Context, name string, _ core.Request) (core.Lease, error) {
		l := examples()["segment"]
		l.Framework = name
		return l, nil
	}}
	c := connect(t, p, Settings{Lanes: 4, Spin: 20 * time.Microsecond})
	shared := c.Source("shared")
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			own := c.Source(strings.Repeat("x", i+1))
			for range 200 {
				for _, s := range []*Source{shared, own} {
					l, err := c.Lease(t.Context(), s, core.Request{}, nothing{})
					if errors.Is(err, ErrAsk) {
						continue // a busy machine
					}
					if err != nil || l.Lease.Framework != string(s.name) {
						t.Errorf("Lease of %s = %+v, %v", s.name, l, err)
						return
					}
				}
			}
		})
	}
	callers.Wait()
}

// TestLiesAboutTheRing: what was announced is checked before it is used.
func TestLiesAboutTheRing(t *testing.T) {
	t.Parallel()
	good := Ring{Segment: Segment, Size: ring.Size(2), Lanes: 2}
	server, err := NewServer(&fake{}, Settings{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for name, r := range map[string]Ring{
		"no lanes":       {Size: ring.Size(0)},
		"many lanes":     {Size: ring.Size(65), Lanes: 65},
		"another size":   {Size: ring.Size(2) + 1, Lanes: 2},
		"too short":      {Size: ring.Size(3), Lanes: 3},
		"negative lanes": {Size: ring.Size(2), Lanes: -1},
	} {
		if _, err := NewClient(server.memory.file, r, 0, nil); err == nil {
			t.Errorf("%s: taken for a ring", name)
		}
	}
	zeros, err := shm.Create("zeros", good.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	if _, err := NewClient(zeros, good, 0, nil); err == nil {
		t.Error("zeros: taken for a ring")
	}
	unsealed, err := os.CreateTemp(t.TempDir(), "ring")
	if err != nil {
		t.Fatal(err)
	}
	defer unsealed.Close()
	if _, err := NewClient(unsealed, good, 0, nil); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("a file that could shrink: %v", err)
	}
}

//nolint:paralleltest // it counts allocations
func TestLeasesMakeNoGarbageOnTheHost(t *testing.T) {
	want := examples()["segment"]
	answer, ok := appendLease(nil, &want)
	if !ok {
		t.Fatal("the example does not fit")
	}
	s := &Source{}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.decode(answer, core.Request{}, s.last.Load()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations to read the same description again", n)
	}
}
