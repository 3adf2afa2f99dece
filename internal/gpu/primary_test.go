//go:build cuda

package gpu

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

func open(t *testing.T) *Primary {
	t.Helper()
	if err := Available(); err != nil {
		t.Fatal(err)
	}
	g, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func active(t *testing.T) bool {
	t.Helper()
	is, err := driver.PrimaryCtxActive(0)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// borrow takes n pieces of pinned memory, of which each is another one.
func borrow(t *testing.T, g *Primary, n int) map[uintptr]bool {
	t.Helper()
	all := make(map[uintptr]bool)
	for range n {
		addr, err := g.Borrow()
		if err != nil || all[addr] {
			t.Fatalf("Borrow = %#x, %v, after %d others", addr, err, len(all))
		}
		all[addr] = true
	}
	return all
}

func giveBack(t *testing.T, g *Primary, all map[uintptr]bool) {
	t.Helper()
	for addr := range all {
		if err := g.GiveBack(addr); err != nil {
			t.Fatal(err)
		}
	}
}

// pinned counts those that the driver knows.
func pinned(t *testing.T, all map[uintptr]bool) (n int) {
	t.Helper()
	for addr := range all {
		a, err := driver.PointerAttributes(addr)
		if err != nil {
			t.Fatal(err)
		}
		if a.Type == driver.HostMemory {
			n++
		}
	}
	return n
}

// word is waited for until it is written.
type word struct{ written atomic.Bool }

func (w *word) Waiting() bool { return !w.written.Load() }

// TestPinnedMemoryIsKept: pinned memory is used again by all who use the GPU; what is too much is freed,
// but not while a stream waits for another process.
func TestPinnedMemoryIsKept(t *testing.T) { //nolint:paralleltest // the tests share the one context
	const many, kept = 12, 8
	first, second := open(t), open(t)
	all := borrow(t, first, many)
	w := new(word)
	if err := Streams.Await(w, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	giveBack(t, first, all)
	if n := pinned(t, all); n != many {
		t.Errorf("%d of %d pieces are left while a stream waits", n, many)
	}
	w.written.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := Streams.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if n := pinned(t, all); n != kept {
		t.Errorf("%d of %d pieces are kept, not %d", n, many, kept)
	}
	again := borrow(t, second, kept)
	for addr := range again {
		if !all[addr] {
			t.Errorf("%#x was not among those that were kept", addr)
		}
	}
	giveBack(t, second, again)
}

// TestContextEndsWithItsLastUser: the context, and the pinned memory in it, stay for the calls that its
// last user has left; who comes before they are made finds all as it was.
func TestContextEndsWithItsLastUser(t *testing.T) { //nolint:paralleltest // the tests share the one context
	g := open(t)
	all := borrow(t, g, 1)
	giveBack(t, g, all)
	w := new(word)
	made := false
	err := errors.Join(
		Streams.Await(w, func() error { return nil }),
		g.End(func() error { made = true; return driver.CtxSynchronize() }),
		g.Close(), g.Close(), // the second does nothing
	)
	if err != nil || made || !active(t) {
		t.Fatalf("%v; the call was made: %v", err, made)
	}
	again := open(t)
	if again.Context != g.Context || pinned(t, borrow(t, again, 1)) != 1 {
		t.Error("another context")
	}
	giveBack(t, again, all)
	w.written.Store(true)
	if err := Streams.Flush(t.Context()); err != nil || !made || !active(t) {
		t.Errorf("%v; the call was made: %v", err, made)
	}
	if err := again.Close(); err != nil || active(t) {
		t.Errorf("the last Close: %v; the context is still there: %v", err, active(t))
	}
}
