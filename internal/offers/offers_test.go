package offers_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect makes both sides of a table, each with a mapping of its own.
func connect(tb testing.TB) (*offers.Writer, *offers.Reader) {
	tb.Helper()
	w, r, _, _ := connectIn(tb)
	return w, r
}

// connectIn gives the memory, too: the writer's and the reader's.
func connectIn(tb testing.TB) (w *offers.Writer, r *offers.Reader, there, here []byte) {
	tb.Helper()
	there, here = shmtest.Twice(tb, offers.Size)
	w, err := offers.NewWriter(there)
	if err != nil {
		tb.Fatal(err)
	}
	if r, err = offers.NewReader(here); err != nil {
		tb.Fatal(err)
	}
	return w, r, there, here
}

// add gets an entry for a name, which there must be.
func add(tb testing.TB, w *offers.Writer, name string) int {
	tb.Helper()
	i, ok := w.Add(name)
	if !ok {
		tb.Fatalf("there is no entry for %s", name)
	}
	return i
}

// publish writes one entry.
func publish(w *offers.Writer, index int, e offers.Entry) {
	w.Begin()
	w.Write(index, &e, nil)
	w.End()
}

// read reads one entry, which must be possible.
func read(tb testing.TB, r *offers.Reader, index int) offers.Entry {
	tb.Helper()
	var e [1]offers.Entry
	if _, ok := r.Read(e[:], index); !ok {
		tb.Fatal("an entry cannot be read while nobody writes")
	}
	return e[0]
}

// take takes what an entry offers, which must be possible.
func take(tb testing.TB, r *offers.Reader, index int) offers.Hold {
	tb.Helper()
	e := read(tb, r, index)
	h, ok := r.Take(index, &e)
	if !ok || h.Ticket != e.Ticket {
		tb.Fatalf("Take = %+v, %v of %+v", h, ok, e)
	}
	return h
}

// TestVersions: what was written is what is read, under a number that no other publication has.
func TestVersions(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	if _, ok := r.Find("x"); ok {
		t.Error("an empty table has a name")
	}
	names, sequence := r.Names(), r.Sequence()
	w.Begin()
	x, y := add(t, w, "x"), add(t, w, "y")
	first := offers.Entry{
		Version: 3, Published: -5, Ticket: 1 << 62, Description: 7, Segment: 1<<63 + 1, Size: 1 << 40, Offset: 64, Forks: 2,
	}
	w.Write(x, &first, nil)
	w.Write(y, &offers.Entry{Version: 1}, nil)
	w.End()
	if r.Names() <= names || r.Sequence() <= sequence {
		t.Errorf("two names came, and the counts are %d and %d as before", r.Names(), r.Sequence())
	}
	if i, ok := r.Find("x"); !ok || i != x || !r.Is(i, "x") || r.Is(i, "y") {
		t.Errorf("x is entry %d, %v; want %d", i, ok, x)
	}
	var both [2]offers.Entry
	sequence, ok := r.Read(both[:], y, x)
	if !ok || both[1] != first || both[0].Version != 1 || sequence != r.Sequence() || sequence%2 != 0 {
		t.Errorf("Read = %+v at %d, %v; want %+v second", both, sequence, ok, first)
	}
	if p := both[0].Publication; p == 0 || p%2 != 0 || p != both[1].Publication || p != r.Publication(x) {
		t.Errorf("published at once under the numbers %d and %d", p, both[1].Publication)
	}
	names = r.Names()
	publish(w, y, offers.Entry{Version: 2})
	if got := read(t, r, y); got.Version != 2 || got.Publication <= first.Publication {
		t.Errorf("the next version is %+v, after publication %d", got, first.Publication)
	}
	if got := read(t, r, x); got != first || r.Names() != names {
		t.Errorf("beside another name's next version, x is %+v and there are %d names", got, r.Names())
	}
}

// TestTake: an offer that was taken is held until it is released, and the side that comes second notices.
func TestTake(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1})
	if none := read(t, r, x); none.Ticket != 0 {
		t.Errorf("without an offer there is ticket %d", none.Ticket)
	} else if _, ok := r.Take(x, &none); ok {
		t.Error("what is not offered was taken")
	}
	publish(w, x, offers.Entry{Version: 2, Ticket: 7})
	old := read(t, r, x)
	a, b := take(t, r, x), take(t, r, x)
	if w.Holds() != 2 || !w.Held(7) || w.Held(8) || !r.Offered(a) {
		t.Errorf("%d holds, 7 held: %v, 8 held: %v, offered: %v", w.Holds(), w.Held(7), w.Held(8), r.Offered(a))
	}
	if r.Release(a) {
		t.Error("what is still offered was withdrawn")
	}
	publish(w, x, offers.Entry{Version: 3, Ticket: 8})
	if h, ok := r.Take(x, &old); ok || w.Holds() != 1 || h.Ticket != 7 {
		t.Errorf("what was withdrawn was taken: %v; %d holds; to be told of: %d", ok, w.Holds(), h.Ticket)
	}
	if !w.Held(7) || r.Offered(b) || !r.Release(b) || w.Held(7) {
		t.Error("an offer that is held and was withdrawn is not told of")
	}
	c := take(t, r, x)
	w.Begin()
	w.Remove(x)
	w.End()
	if !w.Held(8) || !r.Release(c) || w.Held(8) || w.Holds() != 0 {
		t.Errorf("after Remove: %d holds", w.Holds())
	}
}

// TestTheSameOfferAgain: a version that is the same array offers it under the same ticket, which holds stand
// for as before.
func TestTheSameOfferAgain(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1, Ticket: 7})
	first := take(t, r, x)
	publish(w, x, offers.Entry{Version: 2, Ticket: 7})
	second := take(t, r, x)
	if !r.Offered(first) || r.Release(first) || !w.Held(7) || r.Release(second) || w.Held(7) {
		t.Error("an offer under the same ticket is another one")
	}
}

// TestForks: what a fork takes away is not to be had after one, and all else is.
func TestForks(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	if w.Forked() != 1 || r.Forks() != 1 {
		t.Errorf("%d and %d forks at the beginning; want 1, since 0 means that forks do not matter", w.Forked(), r.Forks())
	}
	separate, shared := add(t, w, "separate"), add(t, w, "shared")
	publish(w, separate, offers.Entry{Version: 1, Ticket: 1, Forks: w.Forked()})
	publish(w, shared, offers.Entry{Version: 1, Ticket: 2})
	before := take(t, r, separate)
	w.Forks().Add(1)
	if r.Forks() != 2 {
		t.Errorf("%d forks, want 2", r.Forks())
	}
	e := read(t, r, separate)
	if _, ok := r.Take(separate, &e); ok || w.Holds() != 1 {
		t.Errorf("what a fork has taken away was taken: %v", ok)
	}
	take(t, r, shared)
	if r.Release(before) {
		t.Error("a fork withdraws nothing: the program does")
	}
	publish(w, separate, offers.Entry{Version: 2, Ticket: 3, Forks: w.Forked()})
	take(t, r, separate)
}

// TestHoldsRunOut: there is room for 4096 holds, and what is released makes room.
func TestHoldsRunOut(t *testing.T) {
	t.Parallel()
	w, r := connect(t)
	x := add(t, w, "x")
	publish(w, x, offers.Entry{Version: 1, Ticket: 7})
	held := make([]offers.Hold, 0, 4096)
	for range cap(held) {
		held = append(held, take(t, r, x))
	}
	e := read(t, r, x)
	if _, ok := r.Take(x, &e); ok || w.Holds() != len(held) {
		t.Errorf("%d holds, and one more was taken: %v", w.Holds(), ok)
	}
	r.Release(held[1000])
	held[1000] = take(t, r, x)
	if _, ok := r.Take(x, &e); ok {
		t.Error("one more was taken")
	}
	for i, h := range held {
		if i%500 == 0 && (!w.Held(7) || w.Holds() != len(held)-i) {
			t.Fatalf("%d holds, want %d", w.Holds(), len(held)-i)
		}
		r.Release(h)
	}
	if w.Held(7) || w.Holds() != 0 {
		t.Error("held by nobody")
	}
}

// TestManyNames: there is room for 16384, each is found, and an entry whose name goes is another name's.
func TestManyNames(t *testing.T) {
	t.Parallel()
	const names = 1 << 14
	w, r := connect(t)
	index := make(map[int]bool)
	for i := range names {
		if w.Room() != names-i {
			t.Fatalf("room for %d more after %d", w.Room(), i)
		}
		at := add(t, w, fmt.Sprint("name", i))
		index[at] = true
		publish(w, at, offers.Entry{Version: uint64(i + 1), Ticket: uint64(i + 1)})
	}
	if len(index) != names {
		t.Fatalf("%d entries for %d names", len(index), names)
	}
	for i := 0; i < names; i += 127 {
		if at, ok := r.Find(fmt.Sprint("name", i)); !ok || read(t, r, at).Version != uint64(i+1) {
			t.Errorf("name%d is entry %d, %v", i, at, ok)
		}
	}
	before := r.Names()
	if at, ok := w.Add("one more"); ok {
		t.Errorf("one more name has entry %d", at)
	}
	if _, ok := r.Find("one more"); ok || r.Names() != before {
		t.Error("a name without an entry is found")
	}
	fifth, _ := r.Find("name5")
	old := read(t, r, fifth)
	held := take(t, r, fifth)
	w.Begin()
	w.Remove(fifth)
	w.End()
	if _, ok := r.Find("name5"); ok || r.Is(fifth, "name5") || r.Names() == before {
		t.Error("a name that went is found")
	}
	if gone := read(t, r, fifth); gone.Publication <= old.Publication || gone.Version != 0 || gone.Ticket != 0 {
		t.Errorf("what is left of it is %+v", gone)
	}
	if at := add(t, w, "one more"); at != fifth {
		t.Errorf("entry %d is used while %d is free", at, fifth)
	}
	publish(w, fifth, offers.Entry{Version: 1, Ticket: 9999})
	if _, ok := r.Take(fifth, &old); ok || r.Offered(held) || !r.Release(held) {
		t.Error("the next name's offer is taken for that of the one before")
	}
	if at, ok := r.Find("one more"); !ok || read(t, r, at).Ticket != 9999 {
		t.Error("the name that came for it is not found")
	}
}

// TestNamesWithOneHash: names that a 64-bit FNV-1a hash does not tell apart are two names.
func TestNamesWithOneHash(t *testing.T) {
	t.Parallel()
	const a, b = "x25inbyotjmxpj", "xtapu3akius1go" // which a search has found
	w, r := connect(t)
	first := add(t, w, a)
	publish(w, first, offers.Entry{Version: 1, Ticket: 7})
	if at, ok := r.Find(b); ok || r.Is(first, b) {
		t.Errorf("%s has the entry %d of %s", b, at, a)
	}
	second := add(t, w, b)
	publish(w, second, offers.Entry{Version: 1, Ticket: 8})
	for name, want := range map[string]int{a: first, b: second} {
		if at, ok := r.Find(name); !ok || at != want || !r.Is(at, name) {
			t.Errorf("%s is entry %d, %v; want %d", name, at, ok, want)
		}
	}
	w.Begin()
	w.Remove(first)
	w.End()
	if at, ok := r.Find(b); !ok || at != second {
		t.Errorf("%s is entry %d, %v after %s has gone", b, at, ok, a)
	}
}
