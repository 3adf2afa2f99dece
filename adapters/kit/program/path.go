package program

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
)

// path is the name of an array: a variable of the program and what leads from it to the array. It
// is read, never evaluated.
type path struct {
	root  string
	steps []step
}

// step is one ".name", "[7]" or "[\"key\"]".
type step struct {
	kind stepKind
	text string // of an attribute or a key
	item int64
}

type stepKind uint8

const (
	stepAttr stepKind = iota
	stepKey
	stepItem
)

// Limits that no name meets, and that keep what a path can cost small.
const (
	maxPathBytes = 4096
	maxSteps     = 64
)

// parsePath reads a name such as `frame`, `model.weight`, `batch["x"]` or `d['k'][-1].x`.
func parsePath(name string) (path, error) {
	p, err := (&pathParser{rest: name}).parse()
	if err == nil && len(name) > maxPathBytes {
		err = fmt.Errorf("%d bytes long", len(name))
	}
	if err != nil {
		return path{}, &core.Error{
			Op: "read name", Array: strconv.Quote(clip(name)), Kind: core.ErrConfig, Err: err,
			Remedy: `write names as in Python: frame, model.weight, batch["x"], frames[0]`,
		}
	}
	return p, nil
}

func clip(name string) string {
	const enough = 100
	if len(name) <= enough {
		return name
	}
	return name[:enough] + "..."
}

// String gives the one spelling of a path.
func (p path) String() string {
	var b strings.Builder
	b.WriteString(p.root)
	for _, s := range p.steps {
		b.WriteString(s.String())
	}
	return b.String()
}

func (s step) String() string {
	switch s.kind {
	case stepAttr:
		return "." + s.text
	case stepItem:
		return "[" + strconv.FormatInt(s.item, 10) + "]"
	default:
		return "[" + quote(s.text) + "]"
	}
}

// quote writes a string so that Python and this package read it back.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

type pathParser struct{ rest string }

func (r *pathParser) parse() (p path, err error) {
	if !utf8.ValidString(r.rest) {
		return path{}, errors.New("not UTF-8")
	}
	if p.root, err = r.identifier(); err != nil {
		return path{}, err
	}
	for r.rest != "" {
		s, err := r.step()
		if err != nil {
			return path{}, err
		}
		if p.steps = append(p.steps, s); len(p.steps) > maxSteps {
			return path{}, fmt.Errorf("more than %d steps", maxSteps)
		}
	}
	return p, nil
}

func (r *pathParser) identifier() (string, error) {
	end := strings.IndexFunc(r.rest, func(c rune) bool { return !isNameRune(c) })
	if end < 0 {
		end = len(r.rest)
	}
	first, _ := utf8.DecodeRuneInString(r.rest)
	switch {
	case r.rest == "":
		return "", errors.New("a name is missing at its end")
	case end == 0 || !isNameStart(first):
		return "", fmt.Errorf("a name cannot begin with %q", first)
	}
	name := r.rest[:end]
	r.rest = r.rest[end:]
	return name, nil
}

// isNameStart and isNameRune are Python's rules for identifiers.
func isNameStart(c rune) bool {
	return c == '_' || unicode.IsLetter(c) || unicode.Is(unicode.Nl, c)
}

func isNameRune(c rune) bool {
	return isNameStart(c) || unicode.In(c, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}

func (r *pathParser) step() (step, error) {
	switch {
	case strings.HasPrefix(r.rest, "."):
		r.rest = r.rest[1:]
		name, err := r.identifier()
		return step{kind: stepAttr, text: name}, err
	case strings.HasPrefix(r.rest, "["):
		r.rest = strings.TrimLeft(r.rest[1:], " ")
		s, err := r.subscript()
		if err != nil {
			return step{}, err
		}
		r.rest = strings.TrimLeft(r.rest, " ")
		if !strings.HasPrefix(r.rest, "]") {
			return step{}, errors.New(`"]" is missing after a subscript`)
		}
		r.rest = r.rest[1:]
		return s, nil
	default:
		c, _ := utf8.DecodeRuneInString(r.rest)
		return step{}, fmt.Errorf(`%q instead of "." or "["`, c)
	}
}

// subscript reads what stands in brackets: an integer or a string.
func (r *pathParser) subscript() (step, error) {
	if r.rest == "" {
		return step{}, errors.New("a subscript is missing at its end")
	}
	if c := r.rest[0]; c == '"' || c == '\'' {
		text, err := r.quoted(c)
		return step{kind: stepKey, text: text}, err
	}
	digits := strings.TrimPrefix(r.rest, "-")
	end := len(r.rest) - len(strings.TrimLeft(digits, "0123456789"))
	n, err := strconv.ParseInt(r.rest[:end], 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return step{}, fmt.Errorf("the subscript %s is too large", r.rest[:end])
	case err != nil:
		return step{}, errors.New("a subscript is neither an integer nor a quoted string")
	}
	r.rest = r.rest[end:]
	return step{kind: stepItem, item: n}, nil
}

// quoted reads a string in the quotation marks mark, with the escapes that quote writes.
func (r *pathParser) quoted(mark byte) (string, error) {
	var b strings.Builder
	for r.rest = r.rest[1:]; r.rest != ""; {
		switch {
		case r.rest[0] == mark:
			r.rest = r.rest[1:]
			return b.String(), nil
		case strings.HasPrefix(r.rest, `\'`), strings.HasPrefix(r.rest, `\"`):
			b.WriteByte(r.rest[1])
			r.rest = r.rest[2:]
		default:
			c, wide, tail, err := strconv.UnquoteChar(r.rest, 0)
			if err != nil {
				return "", errors.New("an escape in a quoted string cannot be read")
			}
			if !wide && c >= utf8.RuneSelf { // \xe9 is the character, as in a Python str
				c &= 0xff
			}
			b.WriteRune(c)
			r.rest = tail
		}
	}
	return "", errors.New("a closing quotation mark is missing")
}
