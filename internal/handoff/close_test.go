package handoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// TestLateAnswers: leases that come when nobody waits for them any more are given back, and the slot is of use
// again.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 8), make(chan struct{})
	p := &fake{lease: func(_ context.Context, name string) Look {
		begun <- struct{}{}
		<-proceed // whatever the context says
		return Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
	}}
	c := connect(t, p, Settings{Slots: 1})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	results := make([]Look, 3)
	if err := c.Leases(ctx, []string{"a", "b", "c"}, contract.Request{}, results); !errors.Is(err, context.Canceled) {
		t.Errorf("Leases = %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Leases(ctx, []string{"d"}, contract.Request{}, results[:1]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Leases without a slot = %v", err)
	}
	close(proceed)
	eventually(t, "the leases were granted, and given back", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last == 3 && len(p.standing) == 0
	})
	eventually(t, "the slot is of use again", func() bool {
		_, err := refreshAll(t, c, false, 1)
		return err == nil
	})
}

// TestSlowProducers: nobody waits for one longer than the client's limit.
func TestSlowProducers(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	p := &fake{refresh: func(contract.LeaseID, bool) Look { <-proceed; return Look{} }}
	c := connectFor(t, p, Settings{Slots: 2}, 10*time.Millisecond)
	defer close(proceed)
	for range 3 {
		if _, err := refreshAll(t, c, false, 1); !errors.Is(err, ErrAsk) {
			t.Errorf("Refresh = %v", err)
		}
	}
	if err := c.Release(t.Context(), 1); !errors.Is(err, ErrAsk) {
		t.Errorf("Release = %v", err)
	}
}

// TestSlowCopies: a copy that is made again is waited for, since the producer goes on making it behind a host that has given up. A host
// gives up at the end of its context.
func TestSlowCopies(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Millisecond
	proceed := make(chan struct{})
	p := &fake{refresh: func(id contract.LeaseID, _ bool) Look {
		if id == 1 {
			<-time.After(5 * limit)
		} else {
			<-proceed
		}
		return Look{Status: Unchanged}
	}}
	c := connectFor(t, p, Settings{Slots: 2}, limit)
	defer close(proceed)
	refresh := func(ctx context.Context, id contract.LeaseID) error {
		var results [1]Look
		return c.Refresh(ctx, []contract.LeaseID{id}, make([]contract.Request, 1), false, true, results[:])
	}
	if err := refresh(t.Context(), 1); err != nil {
		t.Errorf("Refresh of a copy that takes long = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*limit)
	defer cancel()
	if err := refresh(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Refresh of a copy that takes longer than its context = %v", err)
	}
}

// TestSlowGroups: several leases are waited for, however long the producer takes, since they are of one moment.
func TestSlowGroups(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Millisecond
	p := &fake{
		lease: func(ctx context.Context, name string) Look {
			<-time.After(5 * limit)
			if ctx.Err() != nil {
				return Look{}
			}
			return Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
		},
		refresh: func(contract.LeaseID, bool) Look { <-time.After(5 * limit); return Look{Status: Unchanged} },
	}
	c := connectFor(t, p, Settings{Slots: 1}, limit)
	var results [2]Look
	err := c.Leases(t.Context(), []string{"a", "b"}, contract.Request{}, results[:])
	if err != nil || results[0].Status != Changed || results[1].Status != Changed {
		t.Fatalf("Leases = %+v, %v", results, err)
	}
	ids := []contract.LeaseID{results[0].Lease.ID, results[1].Lease.ID}
	if err := c.Release(t.Context(), ids...); err != nil {
		t.Error(err)
	}
	clear(results[:])
	err = c.Refresh(t.Context(), ids, make([]contract.Request, 2), false, false, results[:])
	if err != nil || results[0].Status != Unchanged || results[1].Status != Unchanged {
		t.Errorf("Refresh = %+v, %v", results, err)
	}
}

// TestClientsEnd: calls that are under way end, and those that come later are for gRPC.
func TestClientsEnd(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}, 1), make(chan struct{})
	p := &fake{refresh: func(contract.LeaseID, bool) Look { begun <- struct{}{}; <-proceed; return Look{} }}
	c := connect(t, p, Settings{Slots: 1})
	defer close(proceed)
	ended := make(chan error, 2)
	for range 2 { // one waits for the answer, one for the slot
		go func() {
			_, err := refreshAll(t, c, false, 1)
			ended <- err
		}()
	}
	<-begun
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrAsk) {
			t.Errorf("Refresh = %v", err)
		}
		if _, err := leaseAll(t, c, "x"); !errors.Is(err, ErrAsk) {
			t.Errorf("Leases after Close = %v", err)
		}
		if err := c.Release(t.Context(), 1); !errors.Is(err, ErrAsk) {
			t.Errorf("Release after Close = %v", err)
		}
	}
}

// TestCloseWaitsForUse: whoever uses the offers does so until it is done. How often the program had forked is known after that, too.
func TestCloseWaitsForUse(t *testing.T) {
	t.Parallel()
	c := connect(t, &offering{}, Settings{Slots: 1})
	for range 2 {
		if !c.Use() {
			t.Fatal("not in use before its end")
		}
	}
	done := make(chan error)
	go func() { done <- c.Close() }()
	eventually(t, "Close waits", func() bool {
		if c.mapped.TryRLock() {
			c.mapped.RUnlock()
			return false
		}
		return true
	})
	for range 2 {
		if c.Offers.Forks() != 1 || len(done) != 0 {
			t.Error("closed while it is in use")
		}
		c.Unuse()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c.Use() {
		t.Error("in use after its end")
	}
	if n := c.Forks(); n != 1 {
		t.Errorf("%d forks after its end", n)
	}
}

// TestMemoryIsNotTouchedAfterClose: when Close has returned the memory is gone, whatever callers are just doing:
// who touches it faults.
func TestMemoryIsNotTouchedAfterClose(t *testing.T) {
	t.Parallel()
	for round := range 100 {
		p := &offering{}
		c := connectFor(t, p, Settings{Slots: 2, Spin: time.Duration(round%2) * 10 * time.Microsecond}, time.Millisecond)
		p.writer.Begin()
		x, _ := p.writer.Add("x")
		p.writer.Write(x, &offers.Entry{Version: 1, Ticket: 1}, nil)
		p.writer.End()
		var calls atomic.Int64
		var callers sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, err := leaseAll(t, c, "x", "y"); return err },
			func() error { _, err := refreshAll(t, c, false, 1, 2, 3); return err },
			func() error { return c.Release(t.Context(), 1) },
			func() error {
				if !c.Use() {
					return ErrAsk
				}
				defer c.Unuse()
				var e [1]offers.Entry
				if _, ok := c.Offers.Read(e[:], x); !ok {
					return nil
				}
				if h, ok := c.Offers.Take(x, &e[0]); ok {
					c.Offers.Release(h)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
				defer cancel()
				if err := c.Offers.Wait(ctx, x, e[0].Publication, 0); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				return nil
			},
		} {
			for range 2 { // more than slots
				callers.Go(func() {
					for {
						err := call()
						calls.Add(1)
						if c.Use() {
							c.Unuse()
						} else if errors.Is(err, ErrAsk) {
							return
						}
						if err != nil && !errors.Is(err, ErrAsk) {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		moment := rand.Int64N(50)
		eventually(t, "calls are made", func() bool { return calls.Load() > moment })
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
	}
}

// TestServersEnd: a producer is told before the table goes, and one that does not obey its context keeps the
// memory, so that it does not fault.
func TestServersEnd(t *testing.T) {
	t.Parallel()
	for _, obedient := range []bool{true, false} {
		begun, proceed := make(chan struct{}), make(chan struct{})
		p := &offering{fake: fake{lease: func(ctx context.Context, name string) Look {
			close(begun)
			if obedient {
				<-ctx.Done()
			} else {
				<-proceed
			}
			return Look{Status: Changed, Lease: &contract.Lease{Framework: name}}
		}}}
		server, err := NewServer(p, p.Release, plain{}, Settings{Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		file, err := server.Open(Segment)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newClient(file, server.Memory(), plain{}, 0, time.Minute, func(contract.LeaseID) {})
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		ended := make(chan error)
		go func() {
			_, err := leaseAll(t, c, "x")
			ended <- err
		}()
		<-begun
		go func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if p.writer != nil {
				t.Error("the producer keeps a table that is gone")
			}
			close(proceed)
		}()
		if err := <-ended; err != nil && !errors.Is(err, ErrAsk) {
			t.Errorf("Leases of a server that was closed = %v", err)
		}
		<-proceed
		if _, err := leaseAll(t, c, "x"); !errors.Is(err, ErrAsk) {
			t.Errorf("Leases of a server that was closed = %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLiesAboutTheMemory: what was announced is checked before it is used.
func TestLiesAboutTheMemory(t *testing.T) {
	t.Parallel()
	o := &offering{}
	server, err := NewServer(o, o.Release, plain{}, Settings{Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	good := server.Memory()
	if want := (Memory{Segment, offers.Size + MailboxSize(2), 2, true}); good != want {
		t.Errorf("the memory is %+v, want %+v", good, want)
	}
	for name, m := range map[string]Memory{
		"nothing":        {},
		"no slots":       {Size: MailboxSize(0)},
		"many slots":     {Size: MailboxSize(65), Slots: 65},
		"negative slots": {Size: MailboxSize(2), Slots: -1},
		"another size":   {Size: good.Size + 1, Slots: 2, Offers: true},
		"too short":      {Size: offers.Size + MailboxSize(3), Slots: 3, Offers: true},
		"no table":       {Size: MailboxSize(2), Slots: 2},
	} {
		if _, err := NewClient(server.file, m, plain{}, 0, nil); err == nil {
			t.Errorf("%s: taken for a mailbox", name)
		}
	}
	if f, err := server.Open(7); f != nil || err != nil {
		t.Errorf("another segment is %v, %v", f, err)
	}
	zeros, err := shm.Create("zeros", good.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	if _, err := NewClient(zeros, good, plain{}, 0, nil); err == nil {
		t.Error("zeros: taken for a mailbox")
	}
	unsealed, err := os.CreateTemp(t.TempDir(), "mailbox")
	if err != nil {
		t.Fatal(err)
	}
	defer unsealed.Close()
	if _, err := NewClient(unsealed, good, plain{}, 0, nil); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("a file that could shrink: %v", err)
	}
}
