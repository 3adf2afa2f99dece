package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DType is an element type: DLPack's triple of code, bits and lanes in one comparable word
// (code<<24 | bits<<16 | lanes). The zero value is Invalid.
//
// Elements always have the byte order of the machine. Types that DLPack does not have (a foreign byte order, dates,
// structures, text) are an [Opaque] type of the right size, and [LayoutSpec.Tag] names them in the framework's own
// words.
type DType uint32

// The element types that most arrays have. [ParseDType] and [NewDType] make the others: small floats such as
// "float8_e4m3fn", types of several lanes such as "float32x4".
const (
	Invalid DType = 0

	Bool    = DType(codeBool)<<24 | 8<<16 | 1 // one byte, 0 or 1
	Int4    = DType(codeInt)<<24 | 4<<16 | 1  // two to a byte, the low bits first
	Int8    = DType(codeInt)<<24 | 8<<16 | 1
	Int16   = DType(codeInt)<<24 | 16<<16 | 1
	Int32   = DType(codeInt)<<24 | 32<<16 | 1
	Int64   = DType(codeInt)<<24 | 64<<16 | 1
	Uint4   = DType(codeUint)<<24 | 4<<16 | 1 // two to a byte, the low bits first
	Uint8   = DType(codeUint)<<24 | 8<<16 | 1
	Uint16  = DType(codeUint)<<24 | 16<<16 | 1
	Uint32  = DType(codeUint)<<24 | 32<<16 | 1
	Uint64  = DType(codeUint)<<24 | 64<<16 | 1
	Float16 = DType(codeFloat)<<24 | 16<<16 | 1
	Float32 = DType(codeFloat)<<24 | 32<<16 | 1
	Float64 = DType(codeFloat)<<24 | 64<<16 | 1

	BFloat16   = DType(codeBFloat)<<24 | 16<<16 | 1  // the upper half of a float32
	Complex64  = DType(codeComplex)<<24 | 64<<16 | 1 // two float32
	Complex128 = DType(codeComplex)<<24 | 128<<16 | 1
)

// The type codes of DLPack 1.3 (DLDataTypeCode).
const (
	codeInt = iota
	codeUint
	codeFloat
	codeOpaque
	codeBFloat
	codeComplex
	codeBool
	codeFloat8E3M4
	codeFloat8E4M3
	codeFloat8E4M3B11FNUZ
	codeFloat8E4M3FN
	codeFloat8E4M3FNUZ
	codeFloat8E5M2
	codeFloat8E5M2FNUZ
	codeFloat8E8M0FNU
	codeFloat6E2M3FN
	codeFloat6E3M2FN
	codeFloat4E2M1FN
	codeCount
)

// codes gives each type code its name, whether the number of bits is part of the name, and the
// numbers of bits that exist.
var codes = [codeCount]struct {
	name   string
	suffix bool
	bits   []int
}{
	codeInt:               {"int", true, []int{1, 2, 4, 8, 16, 32, 64}},
	codeUint:              {"uint", true, []int{1, 2, 4, 8, 16, 32, 64}},
	codeFloat:             {"float", true, []int{16, 32, 64}},
	codeOpaque:            {"opaque", false, []int{8}},
	codeBFloat:            {"bfloat", true, []int{16}},
	codeComplex:           {"complex", true, []int{32, 64, 128}},
	codeBool:              {"bool", false, []int{8}},
	codeFloat8E3M4:        {"float8_e3m4", false, []int{8}},
	codeFloat8E4M3:        {"float8_e4m3", false, []int{8}},
	codeFloat8E4M3B11FNUZ: {"float8_e4m3b11fnuz", false, []int{8}},
	codeFloat8E4M3FN:      {"float8_e4m3fn", false, []int{8}},
	codeFloat8E4M3FNUZ:    {"float8_e4m3fnuz", false, []int{8}},
	codeFloat8E5M2:        {"float8_e5m2", false, []int{8}},
	codeFloat8E5M2FNUZ:    {"float8_e5m2fnuz", false, []int{8}},
	codeFloat8E8M0FNU:     {"float8_e8m0fnu", false, []int{8}},
	codeFloat6E2M3FN:      {"float6_e2m3fn", false, []int{6}},
	codeFloat6E3M2FN:      {"float6_e3m2fn", false, []int{6}},
	codeFloat4E2M1FN:      {"float4_e2m1fn", false, []int{4}},
}

// NewDType makes the type of a DLPack triple. The error wraps ErrDType if DLPack 1.3 does not have the code, if the
// code does not come in that number of bits, or if lanes is 0. DLPack's opaque handle is an error too: it is a
// pointer, which means nothing in another process.
func NewDType(code, bits, lanes int) (DType, error) {
	if code < 0 || code >= codeCount {
		return Invalid, dtypeError("unknown type code %d", code)
	}
	if bits < 0 || bits > 255 || lanes < 1 || lanes > 65535 {
		return Invalid, dtypeError("%s of %d bits and %d lanes", codes[code].name, bits, lanes)
	}
	d := DType(code)<<24 | DType(bits)<<16 | DType(lanes)
	if !d.Valid() {
		return Invalid, dtypeError("%s of %d bits", codes[code].name, bits)
	}
	return d, nil
}

// Opaque returns the type of elements that DLPack does not have, of itemsize bytes each. The size may be 1 to 65535
// (ErrDType). The type's text is "opaque[16]". In DLPack's terms it is a handle of eight bits with itemsize lanes,
// which no framework exports.
func Opaque(itemsize int) (DType, error) {
	if itemsize < 1 || itemsize > 65535 {
		return Invalid, dtypeError("opaque element of %d bytes; supported are 1 to 65535", itemsize)
	}
	return DType(codeOpaque)<<24 | 8<<16 | DType(itemsize), nil
}

// ParseDType reads the text that [DType.String] returns. The error wraps ErrDType.
func ParseDType(s string) (DType, error) {
	if d, ok := parseScalar(s); ok {
		return d, nil
	}
	if n, ok := strings.CutPrefix(s, "opaque["); ok {
		if n, ok = strings.CutSuffix(n, "]"); ok {
			if size, ok := parseCount(n, 65535); ok {
				return Opaque(size)
			}
		}
	}
	if i := strings.LastIndexByte(s, 'x'); i > 0 {
		d, ok := parseScalar(s[:i])
		lanes, fits := parseCount(s[i+1:], 65535)
		if ok && fits && lanes > 1 {
			return d&^0xffff | DType(lanes), nil
		}
	}
	return Invalid, dtypeError("%q is not the name of one", s)
}

// parseScalar reads the name of a type of one lane.
func parseScalar(s string) (DType, bool) {
	for code, c := range codes {
		if code == codeOpaque {
			continue
		}
		for _, bits := range c.bits {
			if d := DType(code)<<24 | DType(bits)<<16 | 1; d.name() == s {
				return d, true
			}
		}
	}
	return Invalid, false
}

// parseCount reads a positive decimal number in its shortest form.
func parseCount(s string, limit int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && n <= limit && strconv.Itoa(n) == s
}

// Code returns DLPack's type code.
func (d DType) Code() int { return int(d >> 24) }

// Bits returns the number of bits of one lane.
func (d DType) Bits() int { return int(d >> 16 & 0xff) }

// Lanes returns the number of lanes. It is 1 except for vector types and for opaque types, whose size in bytes it is.
func (d DType) Lanes() int { return int(d & 0xffff) }

// Size returns the number of bytes of one element, or 0 if elements share bytes (see [DType.Packed]).
func (d DType) Size() int {
	if bits := d.Bits() * d.Lanes(); bits%8 == 0 {
		return bits / 8
	}
	return 0
}

// Packed reports whether elements share bytes, as those of int4 and float6_e2m3fn do. Arrays of packed elements
// have no byte strides: they are always dense and in row-major order, the low bits first.
func (d DType) Packed() bool { return d.Bits()*d.Lanes()%8 != 0 }

// Opaque reports whether elements are bytes whose meaning DLPack does not know.
func (d DType) Opaque() bool { return d.Code() == codeOpaque }

// Valid reports whether an array can have elements of type d. Every type that this package returns without an
// error is valid.
func (d DType) Valid() bool {
	if d.Code() >= codeCount || d.Lanes() == 0 {
		return false
	}
	return slices.Contains(codes[d.Code()].bits, d.Bits())
}

// String returns the usual name: "float32", "bool", "bfloat16", "float8_e4m3fn", "int4"; "float32x4" for several
// lanes, "opaque[16]" for an opaque type, and "invalid(0x...)" for an invalid one.
func (d DType) String() string {
	switch {
	case !d.Valid():
		return fmt.Sprintf("invalid(%#x)", uint32(d))
	case d.Opaque():
		return "opaque[" + strconv.Itoa(d.Lanes()) + "]"
	case d.Lanes() > 1:
		return d.name() + "x" + strconv.Itoa(d.Lanes())
	default:
		return d.name()
	}
}

func (d DType) name() string {
	c := codes[d.Code()]
	if c.suffix {
		return c.name + strconv.Itoa(d.Bits())
	}
	return c.name
}

// MarshalText returns the text of String. The error for an invalid type wraps ErrDType.
func (d DType) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, dtypeError("%v", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText returns. The error wraps ErrDType.
func (d *DType) UnmarshalText(text []byte) error {
	parsed, err := ParseDType(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

func dtypeError(format string, args ...any) error {
	return &Error{Op: "dtype", Kind: ErrDType, Err: fmt.Errorf(format, args...)}
}
