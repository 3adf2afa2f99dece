package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// elementType gives the element type of a descr, NumPy's word for it: a string such as "<f8", or the
// list of a structure's fields. What DLPack cannot say is opaque, with a tag.
func elementType(descr any, source string) (core.DType, string, error) {
	switch d := descr.(type) {
	case string:
		return simpleType(d)
	case sequence:
		size, err := structSize(d)
		if err != nil {
			return core.Invalid, "", err
		}
		dtype, err := core.Opaque(size)
		return dtype, source, err
	default:
		return core.Invalid, "", refused(fmt.Errorf("descr %.40s", source))
	}
}

func refused(err error) error { return &core.Error{Op: "read", Kind: core.ErrDType, Err: err} }

// simpleType reads byte order, kind and size, as in "<f8", "|b1", "<U5", "<M8[ns]".
func simpleType(descr string) (core.DType, string, error) {
	order, kind, size, unit, err := splitType(descr)
	if err != nil {
		return core.Invalid, "", err
	}
	codes := map[string]core.DType{
		"b1": core.Bool,
		"i1": core.Int8, "i2": core.Int16, "i4": core.Int32, "i8": core.Int64,
		"u1": core.Uint8, "u2": core.Uint16, "u4": core.Uint32, "u8": core.Uint64,
		"f2": core.Float16, "f4": core.Float32, "f8": core.Float64,
		"c8": core.Complex64, "c16": core.Complex128,
	}
	if d, ok := codes[kind+strconv.Itoa(size)]; ok && (order != '>' || size == 1) {
		return d, "", nil
	}
	if kind == "U" {
		size *= 4
	}
	dtype, err := core.Opaque(size)
	if err != nil {
		return core.Invalid, "", err
	}
	tag := descr
	if long, ok := map[string]string{"M": "datetime64", "m": "timedelta64"}[kind]; ok && order != '>' {
		tag = long + unit // as NumPy prints it
	}
	return dtype, tag, nil
}

// splitType takes "<M8[ns]" apart into '<', "M", 8 and "[ns]".
func splitType(descr string) (order byte, kind string, size int, unit string, err error) {
	rest := descr
	order = '|'
	if rest != "" && strings.IndexByte("<>|=", rest[0]) >= 0 {
		order, rest = rest[0], rest[1:]
	}
	unknown := refused(fmt.Errorf("element type %.40q", descr))
	if rest == "" {
		return 0, "", 0, "", unknown
	}
	kind, rest = rest[:1], rest[1:]
	switch {
	case kind == "O":
		return 0, "", 0, "", &core.Error{
			Op: "read", Kind: core.ErrDType, Err: errors.New("the file holds pickled Python objects"),
			Remedy: "save arrays of numbers",
		}
	case kind == "M" || kind == "m":
		if i := strings.IndexByte(rest, '['); i >= 0 {
			rest, unit = rest[:i], rest[i:]
		}
	case strings.IndexByte("biufcSUVa", kind[0]) < 0:
		return 0, "", 0, "", unknown
	}
	size, err = strconv.Atoi(rest)
	if err != nil || size < 1 || size > 65535 {
		return 0, "", 0, "", unknown
	}
	return order, kind, size, unit, nil
}

// structSize adds up the fields of a structure: tuples of a name, a descr and perhaps a shape.
func structSize(fields sequence) (int, error) {
	total := 0
	for _, f := range fields {
		field, ok := f.(sequence)
		if !ok || len(field) < 2 || len(field) > 3 {
			return 0, refused(fmt.Errorf("field %.40v of a structure", f))
		}
		var size int
		switch d := field[1].(type) {
		case string:
			t, _, err := simpleType(d)
			if err != nil {
				return 0, err
			}
			size = t.Size()
		case sequence:
			var err error
			if size, err = structSize(d); err != nil {
				return 0, err
			}
		default:
			return 0, refused(fmt.Errorf("field %.40v of a structure", f))
		}
		n, err := count(field[2:])
		if err != nil {
			return 0, err
		}
		// All factors are below 2^16, so that nothing overflows before it is checked.
		if total += size * n; total > 65535 {
			return 0, refused(errors.New("a structure of more than 65535 bytes"))
		}
	}
	return total, nil
}

// count multiplies the extents of a field's shape, which may be absent or a single number.
func count(shape sequence) (int, error) {
	n := 1
	for len(shape) == 1 {
		inner, ok := shape[0].(sequence)
		if !ok {
			break
		}
		shape = inner
	}
	for _, dim := range shape {
		d, ok := dim.(int)
		if !ok || d < 0 || d > 65535 {
			return 0, refused(fmt.Errorf("extent %v of a field", dim))
		}
		if n *= d; n > 65535 {
			return 0, refused(errors.New("a field of more than 65535 elements"))
		}
	}
	return n, nil
}
