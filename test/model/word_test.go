package model

import (
	"encoding/binary"
	"fmt"
)

// word is what an array of testdata/race.py is full of: it says whose it is.
type word uint64

func (w word) number() int        { return int(w>>48) & 0xff }
func (w word) generation() uint32 { return uint32(w >> 8) }

// valid reports whether the program has made a word.
func (w word) valid() bool {
	return w>>56 == 0xa5 && byte(w) == byte(w>>48^w>>32^w>>16^w>>8)
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
	mixed          bool   // there is more than one generation, or zeros are not only at the end
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
	last := first
	for at := 0; at+size <= len(b); at += size {
		w := wordOf(b[at:], narrow)
		switch {
		case w == last:
		case w == 0 && at > 0:
			last = 0
		case !w.valid() || w.number() != number:
			return c, fmt.Errorf("byte %d of %d: word %016x, the first is %016x", at, len(b), uint64(w), uint64(first))
		default:
			last, c.mixed = w, c.mixed || w != first || c.zeros > 0
			c.oldest, c.newest = min(c.oldest, w.generation()), max(c.newest, w.generation())
		}
		if at == 0 {
			if !w.valid() || w.number() != number {
				return c, fmt.Errorf("the first word of %d bytes is %016x", len(b), uint64(w))
			}
			c.oldest, c.newest = w.generation(), w.generation()
		}
		if w == 0 {
			c.zeros++
		}
	}
	return c, nil
}
