package offers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/offers"
)

// enough bounds what a test waits for.
const enough = time.Minute

// eventually waits until ok, for what no event tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(enough); !ok(); runtime.Gosched() {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestEachVersionWakesItsWaiters: none of many is missed, whether the waiters look for a while or sleep at
// once. The writer waits for them each time, so that one that is missed would be the last.
func TestEachVersionWakesItsWaiters(t *testing.T) {
	t.Parallel()
	for name, spin := range map[string]time.Duration{"asleep": 0, "spinning": 20 * time.Microsecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const versions, sleepers = 1000, 3
			w, r, _, here := connectIn(t)
			x := add(t, w, "x")
			publish(w, x, offers.Entry{Version: 1})
			ctx, cancel := context.WithTimeout(t.Context(), enough)
			defer cancel()
			var seen [2 * sleepers]atomic.Uint64
			var all sync.WaitGroup
			for i := range seen {
				all.Go(func() {
					for last := uint64(0); last < versions; {
						sequence := r.Sequence()
						e := read(t, r, x)
						if e.Version > last {
							last = e.Version
							seen[i].Store(last)
							continue
						}
						wait := func() error { return r.WaitAny(ctx, sequence, spin) }
						if i%2 == 0 {
							wait = func() error { return r.Wait(ctx, x, e.Publication, spin) }
						}
						if err := wait(); err != nil {
							t.Errorf("waiter %d, after version %d: %v", i, last, err)
							return
						}
					}
				})
			}
			for v := uint64(2); v <= versions && !t.Failed(); v++ {
				eventually(t, "all have seen a version", func() bool {
					for i := range seen {
						if seen[i].Load() < v-1 {
							return t.Failed()
						}
					}
					return true
				})
				publish(w, x, offers.Entry{Version: v})
			}
			all.Wait()
			if a, b := u64(here, sequenceSleepersAt), u64(here, entriesAt+entryBytes*x+8); a != 0 || b != 0 {
				t.Errorf("%d and %d sleepers when nobody waits", a, b)
			}
		})
	}
}

// TestWaitingIsSleep: who waits for a name has no turn on a CPU until that name has another version: nobody
// polls, and other names wake nobody.
func TestWaitingIsSleep(t *testing.T) {
	t.Parallel()
	w, r, there, _ := connectIn(t)
	x, other := add(t, w, "x"), add(t, w, "other")
	publish(w, x, offers.Entry{Version: 1})
	publication := r.Publication(x)
	thread, woken := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // which ends with it
		thread <- unix.Gettid()
		woken <- r.Wait(t.Context(), x, publication, 0)
	}()
	id := <-thread
	eventually(t, "the waiter sleeps", func() bool {
		return u64(there, entriesAt+entryBytes*x+8) == 1 && strings.HasPrefix(statusOf(t, id, "State:"), "S")
	})
	const turns = "voluntary_ctxt_switches:"
	before := number(t, statusOf(t, id, turns))
	versions := 0
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond || versions < 100; versions++ {
		publish(w, other, offers.Entry{Version: uint64(versions)})
	}
	// Go itself may interrupt the sleep, a few times.
	if after := number(t, statusOf(t, id, turns)); after-before > versions/10 || len(woken) != 0 {
		t.Errorf("a waiter had %d turns while another name had %d versions", after-before, versions)
	}
	publish(w, x, offers.Entry{Version: 2})
	if err := <-woken; err != nil {
		t.Error(err)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// statusOf reads a line of what the kernel says of a thread.
func statusOf(t *testing.T, thread int, line string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", thread))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, line); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no %s in\n%s", line, text)
	return ""
}

// TestWaitEndsWithItsContext, whether that ends before, while or just when the waiter falls asleep.
func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w, r, _, here := connectIn(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1})
	var all sync.WaitGroup
	for name, wait := range map[string]func(ctx context.Context, spin time.Duration) error{
		"for a name": func(ctx context.Context, spin time.Duration) error {
			return r.Wait(ctx, x, r.Publication(x), spin)
		},
		"for any name": func(ctx context.Context, spin time.Duration) error { return r.WaitAny(ctx, r.Sequence(), spin) },
	} {
		for _, spin := range []time.Duration{0, 0, 0, time.Microsecond} {
			all.Go(func() {
				for i := range 500 {
					ctx, cancel := context.WithCancel(t.Context())
					var begun atomic.Bool
					ended := make(chan error)
					go func() {
						begun.Store(true)
						ended <- wait(ctx, spin)
					}()
					for !begun.Load() {
						runtime.Gosched()
					}
					for rounds := i % 250 * 20; rounds > 0; rounds-- { // up to microseconds
						runtime.KeepAlive(rounds)
					}
					cancel()
					select {
					case err := <-ended:
						if !errors.Is(err, context.Canceled) {
							t.Errorf("waiting %s: %v", name, err)
						}
					case <-time.After(enough):
						t.Errorf("somebody waits %s though its context has ended", name)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if a, b := u64(here, sequenceSleepersAt), u64(here, entriesAt+entryBytes*x+8); a != 0 || b != 0 {
		t.Errorf("%d and %d sleepers when nobody waits", a, b)
	}
}

// TestWaitingForWhatHasCome returns at once, even if the context has ended.
func TestWaitingForWhatHasCome(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1})
	publication, sequence := r.Publication(x), r.Sequence()
	publish(w, x, offers.Entry{Version: 2})
	for _, spin := range []time.Duration{0, time.Minute} {
		if err := r.Wait(t.Context(), x, publication, spin); err != nil {
			t.Error(err)
		}
		if err := r.WaitAny(t.Context(), sequence, spin); err != nil {
			t.Error(err)
		}
	}
	w.Begin()
	w.Remove(x)
	w.End()
	if err := r.Wait(t.Context(), x, r.Publication(x)-2, 0); err != nil {
		t.Errorf("a name that goes wakes nobody: %v", err)
	}
}

// TestAWriterThatDies while it writes leaves a table that cannot be read, and that nobody waits for without
// hope: whoever waits comes back, or heeds its context.
func TestAWriterThatDies(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1, Ticket: 7})
	before := read(t, r, x)
	sequence := r.Sequence()
	w.Begin()
	w.Write(x, &offers.Entry{Version: 2, Ticket: 8}, nil)
	var e [1]offers.Entry
	if _, ok := r.Read(e[:], x); ok {
		t.Errorf("read %+v while it was written", e[0])
	}
	if _, ok := r.Take(x, &before); ok {
		t.Error("an offer was taken that is not there any more")
	}
	if r.Sequence() != sequence {
		t.Errorf("publication %d is complete", r.Sequence())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(ctx, x, r.Publication(x), 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRouse: a waiter that is woken before a version is written waits on, without sleeping at first.
func TestRouse(t *testing.T) {
	t.Parallel()
	w, r, _, here := connectIn(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1})
	sleepers := offers.Word(here, entriesAt+entryBytes*x+8)
	result := make(chan error, 1)
	go func() { result <- r.Wait(t.Context(), x, read(t, r, x).Publication, 0) }()
	for range 3 {
		eventually(t, "it sleeps", func() bool { return sleepers.Load() == 1 })
		eventually(t, "it is awake", func() bool { w.Rouse(x); return sleepers.Load() == 0 })
	}
	if len(result) > 0 {
		t.Fatalf("it has ended without a version: %v", <-result)
	}
	publish(w, x, offers.Entry{Version: 2})
	if err := <-result; err != nil {
		t.Error(err)
	}
}
