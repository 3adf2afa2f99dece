package npy

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// describe gives NumPy's description of an element type as a Python literal. known is false if NumPy
// only knows elements of that type as bytes.
func describe(d core.DType, tag string) (descr string, known bool) {
	if d.Opaque() {
		size := d.Lanes()
		if descr, ok := describeTag(tag, size); ok {
			return descr, true
		}
		return fmt.Sprintf("'|V%d'", size), false
	}
	size := d.Bits() / 8
	kind, known := map[int]string{
		core.Bool.Code(): "b", core.Int8.Code(): "i", core.Uint8.Code(): "u",
		core.Float32.Code(): "f", core.Complex64.Code(): "c",
	}[d.Code()]
	switch {
	case !known || kind == "c" && size < 8: // NumPy has no complex number of two halves
		return fmt.Sprintf("'|V%d'", size), false
	case size == 1:
		return "'|" + kind + "1'", true
	}
	return fmt.Sprintf("'%s%s%d'", machineOrder(), kind, size), true
}

func machineOrder() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "<"
	}
	return ">"
}

// describeTag turns the words with which NumPy prints a type into the description that stands in a
// file. It does not trust them: they come from another process, and a wrong size would make the file
// unreadable.
func describeTag(tag string, size int) (descr string, ok bool) {
	if fields, ok := strings.CutPrefix(tag, "(numpy.record, "); ok && strings.HasSuffix(fields, ")") {
		tag = strings.TrimSuffix(fields, ")") // of a recarray: files do not say that
	}
	if strings.HasPrefix(tag, "[") {
		p := parser{rest: tag}
		n, ok := p.structure()
		if !ok || p.rest != "" || n != size {
			return "", false
		}
		return tag, true
	}
	if strings.HasPrefix(tag, "{") {
		p := parser{rest: tag}
		descr, n, ok := p.gaps()
		return descr, ok && p.rest == "" && n == size
	}
	for name, kind := range map[string]string{"datetime64": "M8", "timedelta64": "m8"} {
		if unit, ok := strings.CutPrefix(tag, name); ok {
			tag = machineOrder() + kind + unit
		}
	}
	if n, ok := scalarSize(tag); !ok || n != size {
		return "", false
	}
	if !strings.ContainsAny(tag[:1], "<>|=") {
		tag = "|" + tag
	}
	return "'" + tag + "'", true
}

// scalarSize is the number of bytes of an element of a type such as ">f8", "|S5" or "<M8[25us]".
func scalarSize(typestr string) (size int, ok bool) {
	m := regexp.MustCompile(`^[<>|=]?([biufcmMSUV])(\d{1,9})(\[[0-9]*[A-Za-zμ]+(?:/[0-9]+)?\])?$`).FindStringSubmatch(typestr)
	if m == nil {
		return 0, false
	}
	size, err := strconv.Atoi(m[2])
	if m[1] == "U" {
		size *= 4
	}
	return size, err == nil && (m[3] == "" || m[1] == "m" || m[1] == "M")
}

// parser reads the description of a structure, such as
// "[('a', '<i4'), ('p', [('x', '<f4')], (2, 3)), (”, '|V4')]", and adds its bytes up.
type parser struct {
	rest  string
	depth int
}

const (
	maxDepth = 32
	maxSize  = 1 << 16 // more than any opaque element has
)

// structure reads a list of fields.
func (p *parser) structure() (size int, ok bool) {
	if p.depth++; p.depth > maxDepth {
		return 0, false
	}
	ok = p.list("[", "]", func() bool {
		n, ok := p.field()
		size += n
		return ok && size <= maxSize
	})
	p.depth--
	return size, ok
}

// field reads "(name, type)" or "(name, type, shape)"; a name may be a pair of title and name.
func (p *parser) field() (size int, ok bool) {
	if !p.take("(") || !p.name() || !p.take(",") {
		return 0, false
	}
	if strings.HasPrefix(p.rest, "[") {
		size, ok = p.structure()
	} else if typestr, found := p.text(); found {
		size, ok = scalarSize(typestr)
	}
	if ok && p.take(",") {
		var n int
		n, ok = p.shape()
		size *= n
	}
	return size, ok && size <= maxSize && p.take(")")
}

// gaps reads a structure with gaps between its fields, such as
// "{'names': ['a', 'b'], 'formats': ['i1', ('<f8', (3,))], 'offsets': [0, 8], 'itemsize': 32, 'aligned': True}", and gives the list of its
// fields and gaps. A field that is a structure itself is refused: NumPy prints some as if they had no gaps.
func (p *parser) gaps() (descr string, size int, ok bool) {
	var names, formats []string
	var sizes, offsets []int
	ok = p.take("{") && p.key("names") && p.list("[", "]", func() bool {
		literal, ok := p.literal(func() bool { _, ok := p.text(); return ok })
		names = append(names, literal)
		return ok
	}) && p.take(",") && p.key("formats") && p.list("[", "]", func() bool {
		literal, n, ok := p.format()
		formats, sizes = append(formats, literal), append(sizes, n)
		return ok
	}) && p.take(",") && p.key("offsets") && p.list("[", "]", func() bool {
		n, ok := p.number()
		offsets = append(offsets, n)
		return ok
	}) && p.take(",") && p.key("itemsize")
	if ok {
		size, ok = p.number()
	}
	if ok && p.take(",") {
		ok = p.key("aligned") && p.take("True")
	}
	if !ok || !p.take("}") || len(formats) != len(names) || len(offsets) != len(names) || size > maxSize {
		return "", 0, false
	}
	var fields []string
	end := 0
	gap := func(to int) {
		if to > end {
			fields = append(fields, fmt.Sprintf("('', '|V%d')", to-end))
		}
	}
	for i, at := range offsets {
		if at < end {
			return "", 0, false // NumPy cannot write down fields that overlap, or in another order
		}
		gap(at)
		fields = append(fields, "("+names[i]+", "+formats[i]+")")
		end = at + sizes[i]
	}
	gap(size)
	return "[" + strings.Join(fields, ", ") + "]", size, end <= size
}

// format reads a type, or a pair of a type and a shape, and gives what stands behind the name in the description of a field.
func (p *parser) format() (literal string, size int, ok bool) {
	array := p.take("(")
	literal, ok = p.literal(func() (ok bool) {
		typestr, found := p.text()
		size, ok = scalarSize(typestr)
		if found && ok && array && p.take(",") {
			var n int
			n, ok = p.shape()
			size *= n
		}
		return found && ok && size <= maxSize
	})
	return literal, size, ok && (!array || p.take(")"))
}

// literal gives the text that f reads.
func (p *parser) literal(f func() bool) (text string, ok bool) {
	before := p.rest
	ok = f()
	return strings.TrimRight(strings.TrimSuffix(before, p.rest), " "), ok
}

func (p *parser) key(name string) bool { return p.take("'"+name+"'") && p.take(":") }

// list reads elements between brackets.
func (p *parser) list(begin, end string, element func() bool) bool {
	if !p.take(begin) {
		return false
	}
	for !p.take(end) {
		if !element() || !p.take(",") && !strings.HasPrefix(p.rest, end) {
			return false
		}
	}
	return true
}

// number reads a number of bytes.
func (p *parser) number() (n int, ok bool) {
	digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
	x, err := strconv.ParseUint(digits, 10, 16)
	p.rest = strings.TrimLeft(p.rest[len(digits):], " ")
	return int(x), err == nil
}

func (p *parser) name() bool {
	pair := p.take("(")
	_, ok := p.text()
	if !pair {
		return ok
	}
	ok = ok && p.take(",")
	_, second := p.text()
	return ok && second && p.take(")")
}

// shape reads a tuple of extents and gives their product.
func (p *parser) shape() (n int, ok bool) {
	n = 1
	ok = p.list("(", ")", func() bool {
		dim, ok := p.number()
		n *= dim
		return ok && n <= maxSize
	})
	return n, ok
}

// text reads a string literal without escapes.
func (p *parser) text() (text string, ok bool) {
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", false
	}
	text, rest, ok := strings.Cut(p.rest[1:], p.rest[:1])
	if !ok || strings.ContainsAny(text, "\\\n") {
		return "", false
	}
	p.rest = strings.TrimLeft(rest, " ")
	return text, true
}

// take passes over a token and the spaces behind it, if it is next.
func (p *parser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = strings.TrimLeft(rest, " ")
	}
	return ok
}
