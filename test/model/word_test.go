package model

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// word is what an array of testdata/race.py is full of: it says whose it is.
type word uint64

func (w word) number() int        { return int(w>>48) & 0xff }
func (w word) generation() uint32 { return uint32(w >> 8) }

// valid reports whether the program has made a word.
func (w word) valid() bool {
	return w>>56 == 0xa5 && byte(w) == byte(w>>48^w>>32^w>>16^w>>8)
}

// wordAt is what the program writes.
func wordAt(number int, generation uint32) word {
	w := word(0xa5)<<56 | word(number)<<48 | word(generation)<<8 //nolint:gosec // not negative
	return w | (w>>48^w>>32^w>>16^w>>8)&0xff
}

// torn reports whether the first bytes of a word are of the generation that follows the one of the others: memory is copied in
// portions of any size, and a thread may be stopped between two.
func (w word) torn() bool {
	for n := 1; n < 8; n++ {
		fresh := word(1)<<(8*n) - 1 // the bytes of the newer one
		low := uint32(fresh >> 8)   //nolint:gosec // those of its generation
		old := w.generation()&^low | (w.generation()-1)&low
		if wordAt(w.number(), old+1)&fresh|wordAt(w.number(), old)&^fresh == w {
			return true
		}
	}
	return false
}

// wordOf reads the words of eight bytes, or of four if narrow, in which case it is made to look like one of eight.
func wordOf(b []byte, narrow bool) word {
	if !narrow {
		return word(binary.LittleEndian.Uint64(b))
	}
	x := binary.LittleEndian.Uint32(b)
	w := word(0xa5)<<56 | word(x>>20&0xf)<<48 | word(x&0xfffff)<<8
	w |= (w>>48 ^ w>>32 ^ w>>16 ^ w>>8) & 0xff
	if x>>24 != 0x5a {
		w = 0
	}
	return w
}

// contents is what the elements of an array say.
type contents struct {
	oldest, newest uint32 // generations
	zeros          int    // words that are zero
	mixed          bool   // there is more than one generation, also in a word, or zeros are not only at the end
}

// read says what bytes hold that must be of one name; the error says where they are not.
func read(b []byte, number int, narrow bool) (c contents, err error) {
	size := 8
	if narrow {
		size = 4
	}
	if len(b) < size {
		return c, fmt.Errorf("%d bytes", len(b))
	}
	first := wordOf(b, narrow)
	last, begun := ^first, false
	for at := 0; at+size <= len(b); at += size {
		w := wordOf(b[at:], narrow)
		if w == 0 && at > 0 {
			c.zeros++
		}
		if w == last {
			continue
		}
		last = w
		switch {
		case w == 0 && at > 0:
		case w.number() != number || !w.valid() && !w.torn():
			return c, fmt.Errorf("byte %d of %d: word %016x, the first is %016x", at, len(b), uint64(w), uint64(first))
		case !w.valid():
			c.mixed = true
		case !begun:
			c.oldest, c.newest, begun = w.generation(), w.generation(), true
			c.mixed = c.mixed || c.zeros > 0
		default:
			c.mixed = c.mixed || w != first || c.zeros > 0
			c.oldest, c.newest = min(c.oldest, w.generation()), max(c.newest, w.generation())
		}
	}
	if !begun {
		return c, fmt.Errorf("no word of %d bytes is whole, the first is %016x", len(b), uint64(first))
	}
	return c, nil
}

// TestTornWords holds that a word is torn if it has bytes of two generations in a row, and not otherwise.
func TestTornWords(t *testing.T) {
	t.Parallel()
	for _, g := range []uint32{0, 1, 0xfe, 0xff, 0x1ff, 0xffff, 0x12ffff, 0xffffff} {
		a, b := wordAt(7, g), wordAt(7, g+1)
		for n := 1; n < 8; n++ {
			fresh := word(1)<<(8*n) - 1
			w := b&fresh | a&^fresh
			if !w.valid() && !w.torn() {
				t.Errorf("the first %d bytes of generation %#x and the others of %#x, %016x, are not torn", n, g+1, g, uint64(w))
			}
		}
		for _, w := range []word{a ^ 0x10, a ^ 1<<24, wordAt(7, g+2)&0xff | a&^0xff} {
			if w.torn() && !w.valid() {
				t.Errorf("%016x of generation %#x is torn", uint64(w), g)
			}
		}
	}
}
