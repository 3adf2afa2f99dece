package cai

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// ParseFormat reads the element type of a buffer from the format of a Py_buffer and the number of bytes of one element.
// The format has the syntax of Python's struct module with the additions of PEP 3118. An empty format, which stands for
// NULL, means unsigned bytes.
//
// An element that is more than one number becomes opaque. Its tag is NumPy's name for the type, or the format itself
// ("T{i:a:d:b:}") if NumPy has none. The tag of other types is "". Errors wrap core.ErrDType: the format cannot be read,
// holds pointers, or does not have the size itemsize.
func ParseFormat(format string, itemsize int) (d core.DType, tag string, err error) {
	if format == "" {
		format = "B"
	}
	order, rest := splitOrder(format)
	count, code, counted := splitCount(rest)
	size := count
	if s, ok := structScalar(order, code); ok && !counted {
		d, tag, err = s.element(order)
		size = s.size
	} else {
		switch code {
		case "s", "c":
			d, tag, err = opaque(count, "|S"+strconv.Itoa(count))
		case "x":
			d, tag, err = opaque(count, "|V"+strconv.Itoa(count))
		case "w":
			d, tag, err = opaque(4*count, text(order, count))
			size = 4 * count
		default:
			if err := checkStruct(rest); err != nil {
				return core.Invalid, "", typeError("format %q %w", format, err)
			}
			d, tag, err = opaque(itemsize, format)
			size = itemsize
		}
	}
	if err != nil {
		return core.Invalid, "", err
	}
	if size != itemsize {
		return core.Invalid, "", typeError("format %q has %d bytes, elements have %d", format, size, itemsize)
	}
	return d, tag, nil
}

// splitCount takes a repeat count off; without one it is 1.
func splitCount(s string) (count int, code string, counted bool) {
	code = strings.TrimLeft(s, "0123456789")
	if n, ok := decimal(s[:len(s)-len(code)]); ok {
		return n, code, true
	}
	return 1, code, code != s
}

// structScalar reads one code of the struct module. Those of l and L depend on the sign of the byte
// order: without one, or with @ or ^, sizes are the machine's own; so they must be for n and N.
func structScalar(order byte, code string) (scalar, bool) {
	native := order == 0 || order == '@' || order == '^'
	long := 4
	if native {
		long = 8
	}
	s, ok := map[string]scalar{
		"?": {'b', 1},
		"b": {'i', 1}, "h": {'i', 2}, "i": {'i', 4}, "l": {'i', long}, "q": {'i', 8}, "n": {'i', 8},
		"B": {'u', 1}, "H": {'u', 2}, "I": {'u', 4}, "L": {'u', long}, "Q": {'u', 8}, "N": {'u', 8},
		"e": {'f', 2}, "f": {'f', 4}, "d": {'f', 8}, "g": {'f', 16},
		"Zf": {'c', 8}, "Zd": {'c', 16}, "Zg": {'c', 32}, "F": {'c', 8}, "D": {'c', 16},
	}[code]
	return s, ok && (native || code != "n" && code != "N")
}

var (
	errSyntax   = errors.New("cannot be read")
	errPointers = errors.New("holds pointers, which mean nothing in another process")
)

// checkStruct reads a format of any number of items, of which it wants to know only that they are
// items and not pointers: T{...} with fields and names, sub-arrays as in (2,3)f, counts, padding.
func checkStruct(s string) error {
	depth, items := 0, 0
	for s != "" {
		switch c := s[0]; {
		case strings.HasPrefix(s, "T{"):
			depth, s = depth+1, s[2:]
			continue
		case c == '}':
			if depth--; depth < 0 {
				return errSyntax
			}
			items-- // what counts is inside
		case c == 'Z' && len(s) > 1 && strings.IndexByte("fdg", s[1]) >= 0:
			s = s[1:]
		case strings.IndexByte("OP&X", c) >= 0:
			return errPointers
		case strings.IndexByte("?bBhHiIlLqQnNefdgFDscpwux", c) >= 0:
		case strings.IndexByte("@=<>!^0123456789", c) >= 0:
			s = s[1:]
			continue
		case c == '(':
			dims, rest, ok := strings.Cut(s[1:], ")")
			if !ok || strings.Trim(dims, "0123456789, ") != "" {
				return errSyntax
			}
			s = rest
			continue
		default:
			return errSyntax
		}
		items++
		s = s[1:]
		if name, ok := strings.CutPrefix(s, ":"); ok {
			if _, s, ok = strings.Cut(name, ":"); !ok {
				return errSyntax
			}
		}
	}
	if depth != 0 || items == 0 {
		return errSyntax
	}
	return nil
}
