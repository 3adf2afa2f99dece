package board_test

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(tb testing.TB) (*board.Poster, *board.Reader) {
	tb.Helper()
	p, r, _ := connectIn(tb)
	return p, r
}

// connectIn gives the poster's memory, too.
func connectIn(tb testing.TB) (*board.Poster, *board.Reader, []byte) {
	tb.Helper()
	there, here := shmtest.Twice(tb, board.Size)
	p, err := board.NewPoster(there)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	r, err := board.NewReader(here)
	if err != nil {
		tb.Fatal(err)
	}
	return p, r, there
}

// post offers a body under a name.
func post(tb testing.TB, p *board.Poster, name, body string, ticket uint64) *board.Note {
	tb.Helper()
	n := p.Reserve()
	if n == nil || !n.Write(name, []byte(body), ticket, true) || !n.Show() {
		tb.Fatalf("%s cannot be offered", name)
	}
	return n
}

// find looks for a name; the body is "" if it is not there.
func find(tb testing.TB, r *board.Reader, name string) (board.Offer, string) {
	tb.Helper()
	var o board.Offer
	found, sure := r.Find([]byte(name), &o, make([]byte, board.MaxText))
	if !sure {
		tb.Errorf("the reader is not sure about %s, and nothing changes", name)
	}
	if !found {
		return o, ""
	}
	return o, string(o.Body)
}

func standing(t *testing.T, p *board.Poster, leases, notes int) {
	t.Helper()
	if l, n := p.Standing(); l != leases || n != notes {
		t.Errorf("%d leases on %d notes, want %d on %d", l, n, leases, notes)
	}
}

// TestALease: from the offer to the ticket.
func TestALease(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	if _, body := find(t, r, "x"); body != "" {
		t.Errorf("an empty board offers %q", body)
	}
	n := post(t, p, "x", "first", 7)
	o, body := find(t, r, "x")
	if body != "first" || !r.Take(&o) || !r.Take(&o) {
		t.Fatalf("the board offers %q, or gives no lease", body)
	}
	standing(t, p, 2, 1)
	if ticket, last := r.Release(o.Cell); last {
		t.Errorf("a lease that is not the last gives ticket %d", ticket)
	}
	if n.Withdraw() {
		t.Error("an offer with a lease is idle")
	}
	if r.Take(&o) {
		t.Error("a lease on what was withdrawn")
	}
	if _, body := find(t, r, "x"); body != "" {
		t.Errorf("what was withdrawn is offered: %q", body)
	}
	if ticket, last := r.Release(o.Cell); !last || ticket != 7 {
		t.Errorf("Release = %d, %v; want the last, and ticket 7", ticket, last)
	}
	standing(t, p, 0, 1)
	n.Free()
	n.Free()
	standing(t, p, 0, 0)
	again := post(t, p, "y", "second", 8)
	if again.Cell() != n.Cell() {
		t.Errorf("cell %d is used while %d is free", again.Cell(), n.Cell())
	}
	if r.Take(&o) {
		t.Error("an old offer gives a lease on the next one")
	}
}

// TestLastLeaseOfAnOffer: while it stands there is no ticket; an offer that nobody leases is idle.
func TestLastLeaseOfAnOffer(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	n := post(t, p, "x", "body", 1)
	o, _ := find(t, r, "x")
	for range 3 {
		if !r.Take(&o) {
			t.Fatal("no lease")
		}
		if _, last := r.Release(o.Cell); last {
			t.Error("a ticket for what is still offered")
		}
	}
	if !n.Withdraw() {
		t.Error("an offer without a lease is not idle")
	}
}

// TestReplacement: the name gives the new one at once, while leases on the old one stand.
func TestReplacement(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	changes := r.Changes()
	first := post(t, p, "x", "first", 1)
	if r.Changes() == changes {
		t.Error("a new name is no change")
	}
	changes = r.Changes()
	old, _ := find(t, r, "x")
	if !r.Take(&old) {
		t.Fatal("no lease")
	}
	post(t, p, "x", "second", 2)
	if first.Withdraw() {
		t.Error("the old one is idle")
	}
	if r.Changes() != changes {
		t.Error("another body is a change of the names")
	}
	o, body := find(t, r, "x")
	if body != "second" || !r.Take(&o) || o.Cell == old.Cell {
		t.Errorf("the board offers %q", body)
	}
	if _, last := r.Release(o.Cell); last {
		t.Error("a ticket for the new one")
	}
	if ticket, last := r.Release(old.Cell); !last || ticket != 1 {
		t.Errorf("Release = %d, %v; want the old one's ticket", ticket, last)
	}
}

// TestManyNames: each is found, those with the same hash in the table's order too, and a name that goes
// leaves its place to another.
func TestManyNames(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	var notes []*board.Note
	for i := range board.MaxNames {
		notes = append(notes, post(t, p, fmt.Sprint("name", i), fmt.Sprint("body", i), uint64(i)))
	}
	for i := range board.MaxNames {
		if _, body := find(t, r, fmt.Sprint("name", i)); body != fmt.Sprint("body", i) {
			t.Fatalf("name%d offers %q", i, body)
		}
	}
	more := p.Reserve()
	if !more.Write("one more", []byte("body"), 1, true) || more.Show() {
		t.Error("more names than the board has room for")
	}
	notes[5].Withdraw()
	if !more.Show() {
		t.Error("a name that was withdrawn leaves no room")
	}
	if _, body := find(t, r, "name5"); body != "" {
		t.Errorf("a name that was withdrawn offers %q", body)
	}
	if _, body := find(t, r, "one more"); body != "body" {
		t.Errorf("the name that came for it offers %q", body)
	}
}

// TestLimits: what does not fit is not offered, and cells that are used up are not used again.
func TestLimits(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	for text, ok := range map[int]bool{board.MaxText - 1: true, board.MaxText: false} {
		n := p.Reserve()
		if n.Write("x", make([]byte, text), 1, true) != ok {
			t.Errorf("a body of %d bytes: want %v", text, ok)
		}
		n.Free()
	}
	if n := p.Reserve(); n.Write("", []byte("x"), 1, true) || n.Show() {
		t.Error("an offer without a name")
	}
	last := post(t, p, "last", "body", 1)
	last.UseUp()
	last.Free()
	var cells []uint32
	for n := p.Reserve(); n != nil; n = p.Reserve() {
		cells = append(cells, n.Cell())
	}
	if slices.Contains(cells, last.Cell()) || len(cells) != board.MaxCells-2 {
		t.Errorf("%d cells more, or a cell after its last generation", len(cells))
	}
	if _, body := find(t, r, "last"); body != "" {
		t.Errorf("what was freed is offered: %q", body)
	}
}

// TestForks: what a fork separates is not offered after one, and all else is.
func TestForks(t *testing.T) {
	t.Parallel()
	p, r := connect(t)
	separate := post(t, p, "separate", "body", 1)
	shared := p.Reserve()
	if !shared.Write("shared", []byte("body"), 2, false) || !shared.Show() {
		t.Fatal("not offered")
	}
	early := p.Reserve()
	before := p.Forked()
	p.Forks().Add(1)
	if p.Forked() != before+1 || !separate.Stale() || shared.Stale() {
		t.Error("the note that a fork separates is not stale, or the other one is")
	}
	if o, _ := find(t, r, "separate"); r.Take(&o) {
		t.Error("a lease on what a fork has separated")
	}
	if o, _ := find(t, r, "shared"); !r.Take(&o) {
		t.Error("no lease on what a fork leaves alone")
	}
	if !early.Write("early", []byte("body"), 3, true) || !early.Show() {
		t.Fatal("not offered")
	}
	if o, _ := find(t, r, "early"); r.Take(&o) {
		t.Error("a lease on what was looked at before the fork")
	}
}

// TestClose: nothing is offered after it, and the memory is not touched any more, which here cannot be.
func TestClose(t *testing.T) {
	t.Parallel()
	p, r, there := connectIn(t)
	n := post(t, p, "x", "body", 1)
	o, _ := find(t, r, "x")
	p.Close()
	if err := unix.Mprotect(there, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if r.Take(&o) || p.Reserve() != nil || n.Show() || n.Write("y", nil, 1, true) || !n.Withdraw() || n.Stale() {
		t.Error("a board that was closed is in use")
	}
	if forked := p.Forked(); forked != 0 {
		t.Errorf("%d forks after Close", forked)
	}
	standing(t, p, 0, 1)
	n.Free()
	standing(t, p, 0, 0)
	p.Close()
}
