package board_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// The layout as docs/PROTOCOL.md has it, written down a second time.
const (
	forksAt, changesAt, namesAt, cellsAt = 0x40, 0x80, 0x1000, 0x5000
	cellBytes                            = 0x800
	liveBit                              = 1 << 23
)

// TestLayout: both sides know the bytes that the protocol says, so that the one side may be another
// release, or written in another language.
func TestLayout(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, board.Size)
	p, err := board.NewPoster(there)
	if err != nil {
		t.Fatal(err)
	}
	if board.Size != 0x405000 || !bytes.Equal(here[:12], []byte("NDBOARD\x01\x01\x00\x00\x00")) {
		t.Errorf("%d bytes that begin with %q", board.Size, here[:12])
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(here[at:]) }
	if u64(forksAt) != 1 || u64(changesAt) != 0 {
		t.Errorf("forks %d, changes %d at the beginning", u64(forksAt), u64(changesAt))
	}
	post(t, p, "other", "", 1).Free()
	n := post(t, p, "frame", "abc", 0x1122334455667788)
	name := here[namesAt:][:16]
	if want := []byte{0x26, 0x52, 0xb3, 0x28, 0x56, 0x33, 0xd4, 0xd8, 1, 0, 0, 0, 0, 0, 0, 0}; !bytes.Equal(name, want) {
		t.Errorf("the name stands as %x, want %x", name, want)
	}
	cell := here[cellsAt:][:cellBytes]
	want := make([]byte, cellBytes)
	binary.LittleEndian.PutUint64(want, 2<<24|liveBit)
	copy(want[0x40:], "\x88\x77\x66\x55\x44\x33\x22\x11\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x03\x00\x00\x00frameabc")
	if !bytes.Equal(cell, want) {
		t.Errorf("the cell is\n%x, want\n%x", cell[:0x80], want[:0x80])
	}
	if u64(changesAt) != 2 {
		t.Errorf("%d changes after two names", u64(changesAt))
	}
	r, err := board.NewReader(here)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := find(t, r, "frame")
	if !r.Take(&o) || u64(cellsAt) != 2<<24|liveBit|1 {
		t.Errorf("the word with a lease is %#x", u64(cellsAt))
	}
	n.Withdraw()
	if u64(cellsAt) != 2<<24|1 || u64(namesAt) != 0 || u64(namesAt+8) != 0 {
		t.Errorf("after the end of the offer the word is %#x, the name %x", u64(cellsAt), here[namesAt:][:16])
	}
}

// TestForeignMemory: what no poster of this version has made is refused.
func TestForeignMemory(t *testing.T) {
	t.Parallel()
	there, here := shmtest.Twice(t, board.Size)
	if _, err := board.NewReader(here); err == nil {
		t.Error("empty memory is a board")
	}
	if _, err := board.NewPoster(there[:board.Size-1]); err == nil {
		t.Error("a board in too little memory")
	}
	if _, err := board.NewPoster(there); err != nil {
		t.Fatal(err)
	}
	if _, err := board.NewReader(here[:board.Size-1]); err == nil {
		t.Error("a part of a board is one")
	}
	there[8] = 2
	if _, err := board.NewReader(here); err == nil {
		t.Error("another version's board is one of ours")
	}
}
