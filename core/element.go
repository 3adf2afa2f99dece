package core

import "math"

// Element lists the Go types of typed access: those whose memory looks like that of an element type.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		float32 | float64 | complex64 | complex128 | F16 | BF16
}

// DTypeOf returns the element type that T stands for.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case uint8:
		return Uint8
	case int32:
		return Int32
	case int64:
		return Int64
	case bool:
		return Bool
	case int8:
		return Int8
	case int16:
		return Int16
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	case F16:
		return Float16
	default: // BF16: Element has no other
		return BFloat16
	}
}

// F16 holds the bits of an IEEE 754 half-precision number: 1 sign, 5 exponent and 10 fraction bits.
type F16 uint16

// Float32 converts f. Every half has an equal float32, infinities and NaNs included.
func (f F16) Float32() float32 {
	sign := uint32(f>>15) << 31
	exp := uint32(f>>10) & 0x1f
	frac := uint32(f) & 0x3ff
	switch exp {
	case 0x1f: // infinity or NaN: the payload is kept
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case 0: // zero or subnormal: frac * 2^-24, exact in a float32
		value := float32(frac) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(value))
	default:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	}
}

// F16Of returns the half nearest to x, ties to even. Numbers that are too large become an infinity, and a NaN
// stays a (quiet) NaN.
func F16Of(x float32) F16 {
	bits := math.Float32bits(x)
	sign := F16(bits>>16) & 0x8000
	exp := int(bits>>23&0xff) - 127
	frac := bits & 0x7fffff
	switch {
	case exp == 128 && frac != 0:
		return sign | 0x7e00 | F16(frac>>13)
	case exp > 15:
		return sign | 0x7c00
	case exp >= -14:
		// A carry out of the fraction runs into the exponent, which is what rounding up means.
		return sign | F16(roundShift(uint32(exp+15)<<23|frac, 13))
	case exp >= -25:
		return sign | F16(roundShift(1<<23|frac, uint(-exp-1)))
	default:
		return sign
	}
}

// roundShift shifts right and rounds to nearest, ties to even.
func roundShift(x uint32, n uint) uint32 {
	half := uint32(1) << (n - 1)
	rest := x & (half<<1 - 1)
	x >>= n
	if rest > half || rest == half && x&1 == 1 {
		x++
	}
	return x
}

// BF16 holds the bits of a bfloat16, the upper half of a float32: 1 sign, 8 exponent and 7 fraction bits.
type BF16 uint16

// Float32 converts f. Every bfloat16 has an equal float32.
func (f BF16) Float32() float32 { return math.Float32frombits(uint32(f) << 16) }

// BF16Of returns the bfloat16 nearest to x, ties to even. A NaN stays a (quiet) NaN.
func BF16Of(x float32) BF16 {
	bits := math.Float32bits(x)
	if x != x { // the usual test for NaN
		return BF16(bits>>16) | 0x40
	}
	return BF16(roundShift(bits, 16))
}
