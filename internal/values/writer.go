package values

import (
	"encoding/binary"
	"math"
	"math/big"
)

// Writer writes the form, an item at a time. Behind the head of a container its items follow. The zero Writer is
// empty and ready to use. A Writer does not check what it is told: the caller counts, keeps to [MaxDepth], and gives
// text that is UTF-8.
type Writer struct{ b []byte }

// NewWriter gives a Writer that appends to b.
func NewWriter(b []byte) *Writer { return &Writer{b} }

// Form gives what was written so far, behind what the Writer was made with. It is valid until the next call.
func (w *Writer) Form() []byte { return w.b }

// head writes the beginning of an item in its shortest form.
func (w *Writer) head(major byte, n uint64) {
	switch {
	case n < 24:
		w.b = append(w.b, major|byte(n))
	case n <= math.MaxUint8:
		w.b = append(w.b, major|24, byte(n))
	case n <= math.MaxUint16:
		w.b = binary.BigEndian.AppendUint16(append(w.b, major|25), uint16(n))
	case n <= math.MaxUint32:
		w.b = binary.BigEndian.AppendUint32(append(w.b, major|26), uint32(n))
	default:
		w.b = binary.BigEndian.AppendUint64(append(w.b, major|27), n)
	}
}

// Null writes None.
func (w *Writer) Null() { w.b = append(w.b, byteNull) }

// Bool writes a bool.
func (w *Writer) Bool(v bool) {
	if v {
		w.b = append(w.b, byteTrue)
	} else {
		w.b = append(w.b, byteFalse)
	}
}

// Int writes an int.
func (w *Writer) Int(v int64) {
	if v < 0 {
		w.head(majorNegint, uint64(-1-v))
	} else {
		w.head(majorUint, uint64(v))
	}
}

// Uint writes an int.
func (w *Writer) Uint(v uint64) { w.head(majorUint, v) }

// BigInt writes an int of any size.
func (w *Writer) BigInt(v *big.Int) {
	if v.Sign() < 0 {
		w.Big(true, new(big.Int).Not(v).Bytes())
	} else {
		w.Big(false, v.Bytes())
	}
}

// Big writes the int n, or -1 - n if neg is true. The bytes of n are in big-endian order; zeros at their front do not
// matter.
func (w *Writer) Big(neg bool, n []byte) {
	for len(n) > 0 && n[0] == 0 {
		n = n[1:]
	}
	major, tag := byte(majorUint), uint64(tagBig)
	if neg {
		major, tag = majorNegint, tagNegBig
	}
	if len(n) > 8 {
		w.head(majorTag, tag)
		w.Bytes(n)
		return
	}
	var word [8]byte
	copy(word[8-len(n):], n)
	w.head(major, binary.BigEndian.Uint64(word[:]))
}

// Float writes a float.
func (w *Writer) Float(v float64) {
	w.b = binary.BigEndian.AppendUint64(append(w.b, byteFloat), math.Float64bits(v))
}

// Complex writes a complex number.
func (w *Writer) Complex(v complex128) {
	w.head(majorTag, tagComplex)
	w.head(majorArray, 2)
	w.Float(real(v))
	w.Float(imag(v))
}

// Text writes a str.
func (w *Writer) Text(s string) {
	w.head(majorText, uint64(len(s)))
	w.b = append(w.b, s...)
}

// TextBytes writes a str, of which these are the bytes.
func (w *Writer) TextBytes(p []byte) {
	w.head(majorText, uint64(len(p)))
	w.b = append(w.b, p...)
}

// Bytes writes bytes.
func (w *Writer) Bytes(p []byte) {
	w.head(majorBytes, uint64(len(p)))
	w.b = append(w.b, p...)
}

// List writes the head of a list of n items.
func (w *Writer) List(n int) { w.head(majorArray, uint64(n)) }

// Tuple writes the head of a tuple of n items.
func (w *Writer) Tuple(n int) { w.tagged(tagTuple, n) }

// Set writes the head of a set of n items.
func (w *Writer) Set(n int) { w.tagged(tagSet, n) }

// FrozenSet writes the head of a frozenset of n items.
func (w *Writer) FrozenSet(n int) { w.tagged(tagFrozenSet, n) }

func (w *Writer) tagged(tag uint64, n int) {
	w.head(majorTag, tag)
	w.head(majorArray, uint64(n))
}

// Dict writes the head of a dict of n keys. Each key and its value follow.
func (w *Writer) Dict(n int) { w.head(majorMap, uint64(n)) }

// Record writes the head of a record of n fields. Each field's name, a text, and its value follow.
func (w *Writer) Record(typeName string, n int) {
	w.head(majorTag, tagRecord)
	w.head(majorArray, 2)
	w.Text(typeName)
	w.head(majorMap, uint64(n))
}

// Array writes the number of an array that travels beside the form.
func (w *Writer) Array(index int) {
	w.head(majorTag, tagArray)
	w.head(majorUint, uint64(index))
}
