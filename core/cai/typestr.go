package cai

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// ParseTypestr reads the element type of an array interface: "<f4", "|b1", "<M8[ns]", "|S5", and also "=f", the style of
// the struct module that some frameworks use. The string descr is the text of the dictionary's descr entry, which says
// what a structure ("|V12") consists of, or "".
//
// The tag is "" unless the type is opaque. Errors wrap core.ErrDType.
func ParseTypestr(typestr, descr string) (d core.DType, tag string, err error) {
	order, rest := splitOrder(typestr)
	kind, size, unit, ok := splitTypestr(rest)
	if !ok {
		if s, ok := structScalar(order, rest); ok {
			return s.element(order)
		}
		return core.Invalid, "", typeError("typestr %q cannot be read", typestr)
	}
	switch kind {
	case 'b', 'i', 'u', 'f', 'c':
		return scalar{kind, size}.element(order)
	case 'M', 'm':
		if size != 8 {
			return core.Invalid, "", typeError("typestr %q: dates have 8 bytes", typestr)
		}
		if isForeign(order) {
			return opaque(size, typestr)
		}
		return opaque(size, map[byte]string{'M': "datetime64", 'm': "timedelta64"}[kind]+unit)
	case 'S', 'a':
		return opaque(size, "|S"+strconv.Itoa(size))
	case 'U':
		return opaque(4*size, text(order, size))
	case 'V':
		if descr == "" || isPlain(descr) {
			descr = "|V" + strconv.Itoa(size)
		}
		if pointers.MatchString(descr) {
			return core.Invalid, "", typeError("descr %q: fields are pointers to Python objects", descr)
		}
		return opaque(size, descr)
	case 'O':
		return core.Invalid, "", typeError("typestr %q: elements are pointers to Python objects", typestr)
	default:
		return core.Invalid, "", typeError("typestr %q: unknown kind", typestr)
	}
}

// pointers finds a field of pointers to Python objects in a descr, at any depth: ('o', '|O').
var pointers = regexp.MustCompile(`, '[|<>=]O[0-9]*'[,)]`)

// splitOrder takes the sign of the byte order off; 0 stands for none.
func splitOrder(s string) (order byte, rest string) {
	if s != "" && strings.IndexByte("<>|=@!^", s[0]) >= 0 {
		return s[0], s[1:]
	}
	return 0, s
}

// isForeign reports whether numbers after this sign have the byte order that this machine has not.
func isForeign(order byte) bool {
	big := binary.NativeEndian.Uint16([]byte{0, 1}) == 1
	switch order {
	case '<':
		return big
	case '>', '!':
		return !big
	default:
		return false
	}
}

// sign is the sign with which NumPy prints a byte order.
func sign(order byte) string {
	if big := binary.NativeEndian.Uint16([]byte{0, 1}) == 1; big != isForeign(order) {
		return ">"
	}
	return "<"
}

// splitTypestr reads the kind, the size and, for dates, the unit.
func splitTypestr(s string) (kind byte, size int, unit string, ok bool) {
	if len(s) < 2 {
		return 0, 0, "", false
	}
	kind, s = s[0], s[1:]
	if i := strings.IndexByte(s, '['); i >= 0 && (kind == 'M' || kind == 'm') {
		s, unit = s[:i], s[i:]
		if len(unit) < 3 || unit[len(unit)-1] != ']' {
			return 0, 0, "", false
		}
	}
	size, ok = decimal(s)
	return kind, size, unit, ok
}

// decimal reads a number of bytes or elements. What has more than nine digits is none.
func decimal(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// isPlain recognises the descr of elements without fields: [(”, '|V8')].
func isPlain(descr string) bool {
	return strings.HasPrefix(descr, "[('', '") && strings.Count(descr, "(") == 1
}

// text is the tag of UCS-4 text.
func text(order byte, length int) string { return sign(order) + "U" + strconv.Itoa(length) }

// A scalar is a number or a truth value: a kind of a typestr, b i u f or c, and a size in bytes.
type scalar struct {
	kind byte
	size int
}

// element is the type of s in a byte order.
func (s scalar) element(order byte) (core.DType, string, error) {
	name := map[byte]string{'b': "bool", 'i': "int", 'u': "uint", 'f': "float", 'c': "complex"}[s.kind]
	if s.kind != 'b' {
		name += strconv.Itoa(8 * s.size)
	}
	typestr := string(s.kind) + strconv.Itoa(s.size)
	d, err := core.ParseDType(name)
	switch {
	case err != nil || s.size != d.Size():
		return core.Invalid, "", typeError("%s: no such type here; long doubles differ between machines", typestr)
	case isForeign(order) && s.size > 1:
		return opaque(s.size, sign(order)+typestr)
	}
	return d, "", nil
}

// opaque is an element type of size bytes with a tag.
func opaque(size int, tag string) (core.DType, string, error) {
	d, err := core.Opaque(size)
	if err != nil {
		return core.Invalid, "", typeError("%s: elements of %d bytes; supported are 1 to 65535", tag, size)
	}
	return d, tag, nil
}

func typeError(format string, args ...any) error {
	return &core.Error{Op: "dtype", Kind: core.ErrDType, Err: fmt.Errorf(format, args...)}
}
