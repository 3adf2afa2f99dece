package cai

import (
	"strconv"

	"github.com/ndbridge/ndbridge/core"
)

// written has the element types that NumPy has, too, in their words there.
var written = map[core.DType]struct{ kind, format string }{
	core.Bool: {"b", "?"}, core.Complex64: {"c", "Zf"}, core.Complex128: {"c", "Zd"},
	core.Float16: {"f", "e"}, core.Float32: {"f", "f"}, core.Float64: {"f", "d"},
	core.Int8: {"i", "b"}, core.Int16: {"i", "h"}, core.Int32: {"i", "i"}, core.Int64: {"i", "l"},
	core.Uint8: {"u", "B"}, core.Uint16: {"u", "H"}, core.Uint32: {"u", "I"}, core.Uint64: {"u", "L"},
}

// Typestr returns the typestr of an element type: "<f4", "|b1". For those that NumPy does not have, and for opaque ones,
// it says how many bytes an element has: "|V2". It returns "" for types whose elements share bytes.
func Typestr(d core.DType) string {
	w, ok := written[d]
	switch {
	case d.Size() == 0:
		return ""
	case !ok:
		return "|V" + strconv.Itoa(d.Size())
	case d.Size() == 1:
		return "|" + w.kind + "1"
	default:
		return sign(0) + w.kind + strconv.Itoa(d.Size())
	}
}

// Format returns the format of a buffer, in the machine's own sizes and byte order: "f", "l", "?". It returns "" for
// types that Python's struct module and PEP 3118 do not have.
func Format(d core.DType) string { return written[d].format }
