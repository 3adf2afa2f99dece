// Package numbers reads elements of any type as float64: what statistics and pictures of arrays are made of. Complex
// numbers count by their magnitude and bools as 0 and 1.
package numbers

import (
	"math"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// Type is the type of elements as numbers.
type Type struct {
	core.DType
	foreign bool // its bytes stand in the order that this machine has not
}

// TypeOf gives the type of the elements of l, which may be numbers in a foreign order of bytes: opaque, with a tag such as
// ">f4".
func TypeOf(l core.Layout) Type {
	if tag := l.Tag(); l.DType().Opaque() && strings.IndexAny(tag, "<>") == 0 {
		d, other, err := cai.ParseTypestr("="+tag[1:], "")
		if err == nil && other == "" && d.Size() == l.DType().Size() && Known(d) {
			return Type{d, true}
		}
	}
	return Type{DType: l.DType()}
}

// Known reports whether the elements have a value that is one number.
func (t Type) Known() bool { return Known(t.DType) }

// ToNative gives the dense elements in raw, which it changes, the order of this machine.
func (t Type) ToNative(raw []byte) {
	n := t.Reversed()
	if n == 0 {
		return
	}
	for part := range slices.Chunk(raw, n) {
		slices.Reverse(part)
	}
}

// Reversed is how many bytes stand in the foreign order each time: those of an element, or of half a complex one. It is 0 if none
// do.
func (t Type) Reversed() int {
	switch {
	case !t.foreign:
		return 0
	case Complex(t.DType):
		return t.Size() / 2
	default:
		return t.Size()
	}
}

// Known reports whether elements of type d have a value that is one number.
func Known(d core.DType) bool { return d.Valid() && !d.Opaque() && d.Lanes() == 1 }

// Integral reports whether elements of type d are whole numbers.
func Integral(d core.DType) bool {
	return Known(d) && (d.Code() == core.Int8.Code() || d.Code() == core.Uint8.Code())
}

// Floating reports whether elements of type d are real numbers of limited precision.
func Floating(d core.DType) bool {
	return Known(d) && !Integral(d) && !Complex(d) && d != core.Bool
}

// Complex reports whether elements of type d are complex numbers.
func Complex(d core.DType) bool { return Known(d) && d.Code() == core.Complex64.Code() }

// Append appends to dst the first n elements of type t in raw, which are dense.
func Append(dst []float64, raw []byte, t Type, n int) []float64 {
	dst = slices.Grow(dst, n)[:len(dst)+n]
	t.Reader()(dst[len(dst)-n:], raw, 0, Unit(t.DType))
	return dst
}

// Unit is the distance between dense elements as a [Reader] wants it: in bytes, or in bits if elements share bytes.
func Unit(d core.DType) int {
	if d.Packed() {
		return d.Bits()
	}
	return d.Size()
}

// Reader fills dst with elements of raw: the first lies at byte at, and each further one stride bytes farther, of any
// sign. If elements share bytes, at and stride are in bits.
type Reader func(dst []float64, raw []byte, at, stride int)

// Reader gives the reader of elements of a type that is [Known].
func (t Type) Reader() Reader {
	read := readerOf(t.DType)
	if !t.foreign {
		return read
	}
	const few = 64
	size, part := t.Size(), t.Reversed()
	return func(dst []float64, raw []byte, at, stride int) {
		var native [few * 16]byte // there is no number of more than 16 bytes
		for len(dst) > 0 {
			n := min(len(dst), few)
			for i := range n {
				take(native[i*size:][:size], raw[at:], part)
				at += stride
			}
			t.ToNative(native[:n*size])
			read(dst[:n], native[:], 0, size)
			dst = dst[n:]
		}
	}
}

func readerOf(d core.DType) Reader {
	switch {
	case d == core.Bool || Integral(d) && !d.Packed():
		if r := wholes(d); r != nil {
			return r
		}
	case d.Bits() > 8:
		return fractions(d)
	}
	values := smallValues(d)
	if d.Packed() {
		bits := d.Bits()
		return func(dst []float64, raw []byte, at, stride int) {
			for i := range dst {
				dst[i] = values[bitsAt(raw, at, bits)]
				at += stride
			}
		}
	}
	return func(dst []float64, raw []byte, at, stride int) {
		walk(dst, raw, at, stride, func(b []byte) float64 { return values[b[0]] })
	}
}

// wholes reads bools and integers of whole bytes.
func wholes(d core.DType) Reader {
	switch d {
	case core.Bool:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(min(b[0], 1)) })
		}
	case core.Uint16:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(word[uint16](b)) })
		}
	case core.Int16:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(int16(word[uint16](b))) })
		}
	case core.Uint32:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(word[uint32](b)) })
		}
	case core.Int32:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(int32(word[uint32](b))) })
		}
	case core.Uint64:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(word[uint64](b)) })
		}
	case core.Int64:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return float64(int64(word[uint64](b))) })
		}
	default:
		return nil // of 8 bits
	}
}

// fractions reads real and complex numbers of more than 8 bits.
func fractions(d core.DType) Reader {
	switch d {
	case core.Float16:
		return func(dst []float64, raw []byte, at, stride int) { walk(dst, raw, at, stride, Half) }
	case core.Float32:
		return func(dst []float64, raw []byte, at, stride int) { walk(dst, raw, at, stride, Single) }
	case core.Float64:
		return func(dst []float64, raw []byte, at, stride int) { walk(dst, raw, at, stride, Double) }
	case core.BFloat16:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 {
				return float64(core.BF16(word[uint16](b)).Float32())
			})
		}
	case core.Complex64:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return math.Hypot(Single(b), Single(b[4:])) })
		}
	case core.Complex128:
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return math.Hypot(Double(b), Double(b[8:])) })
		}
	default: // complex numbers of two halves
		return func(dst []float64, raw []byte, at, stride int) {
			walk(dst, raw, at, stride, func(b []byte) float64 { return math.Hypot(Half(b), Half(b[2:])) })
		}
	}
}

// walk is short enough to be inlined together with value.
func walk(dst []float64, raw []byte, at, stride int, value func([]byte) float64) {
	for i := range dst {
		dst[i] = value(raw[at:])
		at += stride
	}
}

// Half reads a float16.
func Half(b []byte) float64 { return float64(core.F16(word[uint16](b)).Float32()) }

// Single reads a float32.
func Single(b []byte) float64 { return float64(math.Float32frombits(word[uint32](b))) }

// Double reads a float64.
func Double(b []byte) float64 { return math.Float64frombits(word[uint64](b)) }

// bitsAt is the number in the n bits (1 to 8) of raw that begin at bit at, the low bits first.
func bitsAt(raw []byte, at, n int) int {
	word := int(raw[at/8])
	if at/8+1 < len(raw) {
		word |= int(raw[at/8+1]) << 8
	}
	return word >> (at % 8) & (1<<n - 1)
}

// smallValues is the value of each of the patterns that elements of at most 8 bits can have.
func smallValues(d core.DType) *[256]float64 {
	values := new([256]float64)
	format, isFloat := smallFormats()[d.String()]
	bits := d.Bits()
	for i := range 1 << bits {
		switch {
		case isFloat:
			values[i] = format.value(i, bits)
		case d.Code() == core.Int8.Code() && i >= 1<<(bits-1):
			values[i] = float64(i - 1<<bits)
		default:
			values[i] = float64(i)
		}
	}
	return values
}

// smallFormat is a floating-point format of at most 8 bits: sign, exponent, mantissa.
type smallFormat struct {
	mantissa, bias int
	special        special
}

// special says what the patterns mean that are no plain numbers.
type special uint8

const (
	finite   special = iota // none are
	ieee                    // the largest exponent: infinity, and NaN with a mantissa
	allOnes                 // all ones: NaN
	negZero                 // a negative zero: NaN
	exponent                // an exponent without sign and mantissa, whose all ones are NaN
)

// smallFormats follows ml_dtypes and the OCP specifications that DLPack names.
func smallFormats() map[string]smallFormat {
	return map[string]smallFormat{
		"float8_e3m4":        {4, 3, ieee},
		"float8_e4m3":        {3, 7, ieee},
		"float8_e5m2":        {2, 15, ieee},
		"float8_e4m3fn":      {3, 7, allOnes},
		"float8_e4m3fnuz":    {3, 8, negZero},
		"float8_e4m3b11fnuz": {3, 11, negZero},
		"float8_e5m2fnuz":    {2, 16, negZero},
		"float8_e8m0fnu":     {0, 127, exponent},
		"float6_e2m3fn":      {3, 1, finite},
		"float6_e3m2fn":      {2, 3, finite},
		"float4_e2m1fn":      {1, 1, finite},
	}
}

// value is that of one pattern.
func (f smallFormat) value(pattern, bits int) float64 {
	if f.special == exponent {
		if pattern == 1<<bits-1 {
			return math.NaN()
		}
		return math.Ldexp(1, pattern-f.bias)
	}
	sign := 1.0
	magnitude := pattern & (1<<(bits-1) - 1)
	if magnitude != pattern {
		sign = -1
	}
	exp, frac := magnitude>>f.mantissa, magnitude&(1<<f.mantissa-1)
	switch {
	case f.special == negZero && sign < 0 && magnitude == 0,
		f.special == allOnes && magnitude == 1<<(bits-1)-1:
		return math.NaN()
	case f.special == ieee && exp == 1<<(bits-1-f.mantissa)-1:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(float64(frac), 1-f.bias-f.mantissa)
	}
	return sign * math.Ldexp(float64(frac|1<<f.mantissa), exp-f.bias-f.mantissa)
}
