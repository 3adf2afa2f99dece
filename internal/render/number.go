package render

import (
	"encoding/binary"
	"math"

	"github.com/ndbridge/ndbridge/core"
)

// numeric reports whether elements of type d have a value that can be drawn.
func numeric(d core.DType) bool { return d.Valid() && !d.Opaque() && d.Lanes() == 1 }

// integral reports whether elements of type d are whole numbers.
func integral(d core.DType) bool {
	return numeric(d) && (d.Code() == core.Int8.Code() || d.Code() == core.Uint8.Code())
}

// floating reports whether elements of type d are real numbers of limited precision.
func floating(d core.DType) bool {
	return numeric(d) && !integral(d) && !isComplex(d) && d != core.Bool
}

func isComplex(d core.DType) bool { return numeric(d) && d.Code() == core.Complex64.Code() }

// magnitudes appends to dst the values of the elements of type d in raw, complex ones as their
// magnitude. Of packed elements, raw begins with the first; n is their number.
func magnitudes(dst []float64, raw []byte, d core.DType, n int) []float64 {
	order := binary.NativeEndian
	switch d {
	case core.Bool:
		return each(dst, raw, 1, func(b []byte) float64 { return float64(min(b[0], 1)) })
	case core.Uint8:
		return each(dst, raw, 1, func(b []byte) float64 { return float64(b[0]) })
	case core.Int8:
		return each(dst, raw, 1, func(b []byte) float64 { return float64(int8(b[0])) })
	case core.Uint16:
		return each(dst, raw, 2, func(b []byte) float64 { return float64(order.Uint16(b)) })
	case core.Int16:
		return each(dst, raw, 2, func(b []byte) float64 { return float64(int16(order.Uint16(b))) })
	case core.Uint32:
		return each(dst, raw, 4, func(b []byte) float64 { return float64(order.Uint32(b)) })
	case core.Int32:
		return each(dst, raw, 4, func(b []byte) float64 { return float64(int32(order.Uint32(b))) })
	case core.Uint64:
		return each(dst, raw, 8, func(b []byte) float64 { return float64(order.Uint64(b)) })
	case core.Int64:
		return each(dst, raw, 8, func(b []byte) float64 { return float64(int64(order.Uint64(b))) })
	case core.Float16:
		return each(dst, raw, 2, half)
	case core.BFloat16:
		return each(dst, raw, 2, func(b []byte) float64 {
			return float64(core.BF16(order.Uint16(b)).Float32())
		})
	case core.Float32:
		return each(dst, raw, 4, single)
	case core.Float64:
		return each(dst, raw, 8, double)
	case core.Complex64:
		return each(dst, raw, 8, func(b []byte) float64 { return math.Hypot(single(b), single(b[4:])) })
	case core.Complex128:
		return each(dst, raw, 16, func(b []byte) float64 { return math.Hypot(double(b), double(b[8:])) })
	default:
		if isComplex(d) { // of two halves
			return each(dst, raw, 4, func(b []byte) float64 { return math.Hypot(half(b), half(b[2:])) })
		}
	}
	value := smallValues(d)
	for i := range n {
		dst = append(dst, value[bitsAt(raw, i*d.Bits(), d.Bits())])
	}
	return dst
}

func each(dst []float64, raw []byte, size int, value func([]byte) float64) []float64 {
	for ; len(raw) >= size; raw = raw[size:] {
		dst = append(dst, value(raw))
	}
	return dst
}

func half(b []byte) float64 { return float64(core.F16(binary.NativeEndian.Uint16(b)).Float32()) }

func single(b []byte) float64 { return float64(math.Float32frombits(binary.NativeEndian.Uint32(b))) }

func double(b []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(b)) }

// bitsAt is the number in the n bits (1 to 8) of raw that begin at bit at, the low bits first.
func bitsAt(raw []byte, at, n int) int {
	word := int(raw[at/8])
	if at/8+1 < len(raw) {
		word |= int(raw[at/8+1]) << 8
	}
	return word >> (at % 8) & (1<<n - 1)
}

// smallValues is the value of each of the patterns that elements of at most 8 bits can have.
func smallValues(d core.DType) [256]float64 {
	var values [256]float64
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
