// Package names reads the names of arrays of Python programs, as users write them.
package names

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
)

// Path is the name of an array: a variable of the program and what leads from it to the array. It
// is read, never evaluated.
type Path struct {
	Of    Function // the function whose local variable Root is; zero: Root is a global variable
	Root  string   // the variable, an identifier
	Steps []Step
}

// Step leads from an object to a part of it: ".name", "[7]", "[\"key\"]", "[::2, 0]" or "[model.weight]".
type Step struct {
	Kind Kind
	Text string // of an attribute or a key
	Item int64
	Of   []Subscript // of a slice, or of a tuple
	By   *Path
}

// Kind says what a step asks an object for.
type Kind uint8

// The kinds of step.
const (
	Attr   Kind = iota // an attribute, Step.Text
	Key                // an item, by the str Step.Text
	Item               // an item, by the int Step.Item
	Slice              // a part of an array, or an item by a tuple, by Step.Of
	ByName             // an item of a dict, by the very object that another name, Step.By, leads to
	Each               // in a pattern: any item
	Deep               // in a pattern: any steps, or none
)

// Limits that no name meets, and that keep what a path can cost small.
const (
	maxBytes = 4096
	maxSteps = 64
	maxInner = 8 // names within names
)

// Parse reads a name such as `frame`, `model.weight`, `batch["x"]`, `d['k'][-1].x` or `main().loss`. The error
// wraps core.ErrConfig.
func Parse(name string) (Path, error) { return parse(&parser{rest: name}) }

// ParseFunction reads the name of something to call. Before it the module may stand that is imported for it, and that has it: `json:dumps`,
// `pkg.model:Net.predict`. Otherwise module is "", and the name is one that Parse reads.
func ParseFunction(name string) (module string, p Path, err error) {
	r := &parser{rest: name, imports: true}
	p, err = parse(r)
	return r.module, p, err
}

func parse(r *parser) (Path, error) {
	name := r.rest
	about := core.Error{Op: "read name", Object: strconv.Quote(Clip(name)), Kind: core.ErrConfig}
	if len(name) > maxBytes {
		about.Err = fmt.Errorf("%d bytes long", len(name))
		about.Remedy = fmt.Sprintf("use a name of at most %d bytes", maxBytes)
		return Path{}, &about
	}
	p, err := r.parse()
	if err != nil {
		about.Err, about.Remedy = err, `write names as in Python: frame, model.weight, batch["x"], frames[0, ::2], main().loss`
		return Path{}, &about
	}
	return p, nil
}

// Clip gives as much of a name as an error should quote.
func Clip(name string) string {
	const enough = 100
	if len(name) <= enough {
		return name
	}
	return strings.ToValidUTF8(name[:enough], "") + "..."
}

// Front gives the path without what follows its first n steps.
func (p Path) Front(n int) Path { return Path{Of: p.Of, Root: p.Root, Steps: p.Steps[:n:n]} }

// With gives the path with more steps.
func (p Path) With(s ...Step) Path {
	p.Steps = append(p.Steps[:len(p.Steps):len(p.Steps)], s...)
	return p
}

// Plain gives how many steps come before those at the end that can be indices of an array.
func (p Path) Plain() int {
	n := len(p.Steps)
	for n > 0 && p.Steps[n-1].isIndex() {
		n--
	}
	return n
}

// String gives the one spelling of a path.
func (p Path) String() string {
	var b strings.Builder
	if p.Of != (Function{}) {
		b.WriteString(p.Of.String())
		b.WriteByte('.')
	}
	b.WriteString(p.Root)
	for _, s := range p.Steps {
		b.WriteString(s.String())
	}
	return b.String()
}

// String gives the one spelling of a step.
func (s Step) String() string {
	switch s.Kind {
	case Attr:
		return "." + s.Text
	case Item:
		return "[" + strconv.FormatInt(s.Item, 10) + "]"
	case Each:
		return "[*]"
	case Deep:
		return ".**"
	case ByName:
		return "[" + s.By.String() + "]"
	case Slice:
		parts := make([]string, len(s.Of))
		for i, part := range s.Of {
			parts[i] = part.String()
		}
		text := strings.Join(parts, ", ")
		if len(parts) == 1 && s.IsTuple() {
			text += ","
		}
		return "[" + text + "]"
	default:
		return "[" + quote(s.Text) + "]"
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

type parser struct {
	rest  string
	globs bool // it is a pattern
	inner int  // how many names it is within

	imports bool   // it may begin with a module that is to be imported
	module  string // that one
}

func (r *parser) parse() (p Path, err error) {
	if !utf8.ValidString(r.rest) {
		return Path{}, errors.New("not UTF-8")
	}
	if p, err = r.path(); err != nil {
		return Path{}, err
	}
	if r.rest != "" {
		c, _ := utf8.DecodeRuneInString(r.rest)
		return Path{}, fmt.Errorf(`%q instead of "." or "["`, c)
	}
	if r.globs {
		return p, p.onlyNames()
	}
	return p, nil
}

// path reads a name, up to what cannot belong to it.
func (r *parser) path() (p Path, err error) {
	if p.Of, err = r.function(); err != nil {
		return Path{}, err
	}
	if p.Root, err = r.identifier(); err != nil {
		return Path{}, err
	}
	for strings.HasPrefix(r.rest, ".") || strings.HasPrefix(r.rest, "[") {
		s, err := r.step()
		if err != nil {
			return Path{}, err
		}
		if p.Steps = append(p.Steps, s); len(p.Steps) > maxSteps {
			return Path{}, fmt.Errorf("more than %d steps", maxSteps)
		}
	}
	return p, nil
}

// byName reads the name in brackets of an object that is a key. What may have stars there is the name around it.
func (r *parser) byName() (Step, error) {
	defer func(globs bool) { r.inner, r.globs = r.inner-1, globs }(r.globs)
	r.globs = false
	if r.inner++; r.inner > maxInner {
		return Step{}, fmt.Errorf("more than %d names within each other", maxInner)
	}
	p, err := r.path()
	return Step{Kind: ByName, By: &p}, err
}

// namesObject reports whether a name stands in brackets, and no index.
func (r *parser) namesObject() bool {
	word := &parser{rest: r.rest}
	name, err := word.identifier()
	return err == nil && name != "None"
}

func (r *parser) identifier() (string, error) {
	end := strings.IndexFunc(r.rest, func(c rune) bool { return !isNameRune(c) && (c != '*' || !r.globs) })
	if end < 0 {
		end = len(r.rest)
	}
	first, _ := utf8.DecodeRuneInString(r.rest)
	switch {
	case r.rest == "":
		return "", errors.New("a name is missing at its end")
	case end == 0 || !isNameStart(first) && first != '*':
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

func (r *parser) step() (Step, error) {
	if rest, ok := strings.CutPrefix(r.rest, "."); ok {
		r.rest = rest
		if s, ok := r.numbered(); ok {
			return s, nil
		}
		name, err := r.identifier()
		if name == Every {
			return Step{Kind: Deep}, err
		}
		return Step{Kind: Attr, Text: name}, err
	}
	r.rest = strings.TrimLeft(r.rest[1:], " ")
	s, err := r.subscript()
	if err != nil {
		return Step{}, err
	}
	r.rest = strings.TrimLeft(r.rest, " ")
	if !strings.HasPrefix(r.rest, "]") {
		return Step{}, errors.New(`"]" is missing after a subscript`)
	}
	r.rest = r.rest[1:]
	return s, nil
}

// numbered reads an item as the names of PyTorch's parameters have it: layers.0.weight is layers[0].weight.
func (r *parser) numbered() (Step, bool) {
	text := r.rest
	if end := strings.IndexAny(text, ".[] "); end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || n < 0 {
		return Step{}, false
	}
	r.rest = r.rest[len(text):]
	return Step{Kind: Item, Item: n}, true
}

// subscript reads what stands in brackets: a string, an index, or a name.
func (r *parser) subscript() (Step, error) {
	if r.rest == "" {
		return Step{}, errors.New("a subscript is missing at its end")
	}
	if r.rest[0] == '(' {
		return r.tuple()
	}
	if rest, ok := strings.CutPrefix(r.rest, "*"); ok && r.globs {
		r.rest = rest
		return Step{Kind: Each}, nil
	}
	if r.namesObject() {
		return r.byName()
	}
	return r.index(']')
}

// quoted reads a string in the quotation marks mark, with the escapes that quote writes.
func (r *parser) quoted(mark byte) (string, error) {
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
