package py

// #include "plain.h"
import "C"

import (
	"iter"
	"unsafe"
)

// PieceKind says what a [Piece] is.
type PieceKind int32

// The kinds of piece. Those from PieceList on are containers, whose items follow.
const (
	PieceNone      PieceKind = C.NDPY_NONE
	PieceFalse     PieceKind = C.NDPY_FALSE
	PieceTrue      PieceKind = C.NDPY_TRUE
	PieceInt       PieceKind = C.NDPY_INT
	PieceBig       PieceKind = C.NDPY_BIG
	PieceFloat     PieceKind = C.NDPY_FLOAT
	PieceComplex   PieceKind = C.NDPY_COMPLEX
	PieceStr       PieceKind = C.NDPY_STR
	PieceBytes     PieceKind = C.NDPY_BYTES
	PieceObject    PieceKind = C.NDPY_OBJECT
	PieceList      PieceKind = C.NDPY_LIST
	PieceTuple     PieceKind = C.NDPY_TUPLE
	PieceSet       PieceKind = C.NDPY_SET
	PieceFrozenSet PieceKind = C.NDPY_FROZENSET
	PieceDict      PieceKind = C.NDPY_DICT
	PieceRecord    PieceKind = C.NDPY_RECORD
)

// MaxPlainDepth is how deep containers may lie in each other.
const MaxPlainDepth = C.NDPY_MAX_DEPTH

// Piece is a plain object, or the head of a container, whose items follow. Its fields are those of C.
type Piece struct {
	Kind     PieceKind
	negative int32
	// N is the value of a PieceInt; the length of what a PieceStr, PieceBytes or PieceBig has in memory; of a container
	// how many items follow: two for each key of a dict, or field of a record. Of a PieceObject it is its class.
	N      int64
	Re, Im float64 // PieceComplex; PieceFloat, without Im
	text   uintptr
	at     int64
	Object Object // PieceObject
}

// A piece is one of C's.
var _ [unsafe.Sizeof(C.ndpy_piece{})]byte = [unsafe.Sizeof(Piece{})]byte{}

// Text gives what a PieceStr or PieceBytes that was read says, or the digits of a PieceBig to the base 16, with "0x". It is
// the program's memory: valid until the next call of a method of the GIL or of the Plain.
func (p *Piece) Text() []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p.text)), int(p.N))
}

// Class gives the class of a PieceObject that was read: borrowed.
func (p *Piece) Class() Object { return Object(p.N) }

// In makes the piece one whose text lies in the bytes that are given to [Plain.Make], from a place on: that of a PieceStr,
// which is UTF-8; that of a PieceBytes; or that of a PieceBig, which has its bytes in big-endian order and stands for -1
// less their value if negative is true.
func (p *Piece) In(at, n int, negative bool) {
	p.at, p.N, p.negative = int64(at), int64(n), 0
	if negative {
		p.negative = 1
	}
}

// plain is what a Plain has in C.
type plain struct{ c C.ndpy_plain }

// fault says why there are no more pieces.
func (p *plain) fault(g *GIL) PlainFault {
	switch p.c.status {
	case C.NDPY_FINE:
		return PlainFault{}
	case C.NDPY_FAILED:
		return PlainFault{Kind: PlainRaised, Err: g.failure()}
	case C.NDPY_DEEP:
		return PlainFault{Kind: PlainDeep}
	case C.NDPY_CHANGED:
		return PlainFault{Kind: PlainChanged}
	case C.NDPY_NO_TEXT:
		return PlainFault{Kind: PlainNoText}
	default:
		return PlainFault{Kind: PlainTwice}
	}
}

func (p *plain) clear() { C.ndpy_clear_plain(&p.c) }

// Place gives the way to the object that was read last, or is to be made next: the containers that it lies in, from the
// outermost one on.
func (p *plain) Place() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for i := range int(p.c.depth) {
			f := &p.c.frames[i]
			index := int(f.i)    // how many items have come
			if p.c.making == 0 { // the last of them is meant
				index--
			}
			if !yield(Place{Kind: PieceKind(f.kind), Index: index, Key: Object(f.key)}) {
				return
			}
		}
	}
}

func (p *plain) read(o Object, pieces []Piece) int {
	first := (*C.ndpy_piece)(unsafe.Pointer(unsafe.SliceData(pieces)))
	return int(C.ndpy_read_plain(&p.c, C.ndpy(o), first, C.size_t(len(pieces))))
}

// AtEnd reports that nothing is left to be read.
func (p *plain) AtEnd() bool { return p.c.depth == 0 && p.c.given == 0 }

func (p *plain) give(kind PieceKind, o, names Object) {
	C.ndpy_give_plain(&p.c, C.int(kind), C.ndpy(o), C.ndpy(names))
}

func (p *plain) make(pieces []Piece, text []byte) int {
	first := (*C.ndpy_piece)(unsafe.Pointer(unsafe.SliceData(pieces)))
	bytes := (*C.char)(unsafe.Pointer(unsafe.SliceData(text)))
	return int(C.ndpy_make_plain(&p.c, first, C.size_t(len(pieces)), bytes))
}

// take gives the reference to what was made, or 0.
func (p *plain) take() Object {
	o := Object(p.c.result)
	p.c.result = 0
	return o
}
