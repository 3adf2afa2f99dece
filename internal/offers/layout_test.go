package offers_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// The layout as docs/PROTOCOL.md has it, written down a second time.
const (
	sequenceAt, sequenceSleepersAt, namesAt, usedAt = 0x40, 0x48, 0x50, 0x58

	forksAt, topAt, entriesAt, holdsAt = 0x80, 0xc0, 0x1000, 0x1001000

	entryBytes = 0x400
	tableBytes = 0x1009000
)

func u64(mem []byte, at int) uint64 { return binary.LittleEndian.Uint64(mem[at:]) }

// TestLayout: both sides know the bytes that the protocol says, so that the one side may be another
// release, or written in another language.
func TestLayout(t *testing.T) {
	t.Parallel()
	w, r, there, here := connectIn(t)
	if offers.Size != tableBytes || !bytes.Equal(here[:12], []byte("NDOFFERS\x02\x00\x00\x00")) {
		t.Errorf("%#x bytes that begin with %q", offers.Size, here[:12])
	}
	header := func(what string, sequence, names, forks, top uint64) {
		t.Helper()
		for at, want := range map[int]uint64{sequenceAt: sequence, sequenceSleepersAt: 0, namesAt: names, forksAt: forks, topAt: top} {
			if got := u64(here, at); got != want {
				t.Errorf("%s: %d at %#x, want %d", what, got, at, want)
			}
		}
	}
	header("at the beginning", 0, 0, 1, 0)
	w.Begin()
	other, frame := add(t, w, "other"), add(t, w, "frame")
	w.Write(frame, &offers.Entry{
		Version: 3, Published: 4, Ticket: 0x1122334455667788, Description: 6, Segment: 7, Size: 8, Offset: 9, Forks: 1,
	}, []byte("text"))
	header("while it is written", 1, 2, 1, 0)
	w.End()
	header("when it is written", 2, 2, 1, 0)
	for word, want := range []uint64{
		2, 0, 0x2b2e588f7b83d94f, 3, 4, 0x1122334455667788, 6, 7, 8, 9, 1, 0x708142fed78795d6, 4, 0x74786574,
	} {
		if got := u64(there, entriesAt+entryBytes*frame+8*word); got != want {
			t.Errorf("word %d of the entry is %#x, want %#x", word, got, want)
		}
	}
	if used := u64(here, usedAt); other != 0 || frame != 1 || used != 2 {
		t.Errorf("the first names have the entries %d and %d of %d", other, frame, used)
	}
	h := take(t, r, frame)
	header("with a hold", 2, 2, 1, 1)
	if got := u64(there, holdsAt); got != h.Ticket {
		t.Errorf("the first hold is %#x, want %#x", got, h.Ticket)
	}
	r.Release(h)
	header("after it", 2, 2, 1, 1)
	w.Begin()
	w.Remove(frame)
	w.End()
	header("after a name has gone", 4, 3, 1, 1)
	for word, want := range []uint64{4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		if got := u64(there, entriesAt+entryBytes*frame+8*word); got != want {
			t.Errorf("word %d of a name that has gone is %#x, want %#x", word, got, want)
		}
	}
	if got := u64(there, holdsAt); got != 0 {
		t.Errorf("a hold that was given back is %#x", got)
	}
}

// TestForeignMemory: what no writer of this version has made is refused.
func TestForeignMemory(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, offers.Size)
	if _, err := offers.NewReader(here); err == nil {
		t.Error("empty memory is a table")
	}
	if _, err := offers.NewWriter(there[:offers.Size-1]); err == nil {
		t.Error("a table in too little memory")
	}
	if _, err := offers.NewWriter(there); err != nil {
		t.Fatal(err)
	}
	if _, err := offers.NewReader(here[:offers.Size-1]); err == nil {
		t.Error("a part of a table is one")
	}
	if _, err := offers.NewReader(nil); err == nil {
		t.Error("nothing is a table")
	}
	there[8] = 1
	if _, err := offers.NewReader(here); err == nil {
		t.Error("another version's table is one of ours")
	}
}
