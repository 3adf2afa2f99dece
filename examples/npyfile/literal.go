package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a literal may be nested.
const maxDepth = 32

// sequence is a Python tuple or list.
type sequence []any

// dict is a Python dict whose keys are strings, with the source text of each value.
type dict map[string]entry

type entry struct {
	value  any
	source string
}

// parseLiteral reads the part of Python's literals that headers consist of, as ast.literal_eval does:
// str, int, bool, None, tuples, lists and dicts with str keys. They become string, int, bool, nil,
// sequence and dict.
func parseLiteral(text string) (any, error) {
	p := &literal{rest: text}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.rest != "" {
		return nil, fmt.Errorf("%.20q after the end", p.rest)
	}
	return v, nil
}

type literal struct{ rest string }

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n\f") }

// take takes one character off the front if it is there.
func (p *literal) take(c byte) bool {
	p.space()
	if p.rest != "" && p.rest[0] == c {
		p.rest = p.rest[1:]
		return true
	}
	return false
}

func (p *literal) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	p.space()
	if p.rest == "" {
		return nil, errors.New("it ends too early")
	}
	switch c := p.rest[0]; {
	case c == '{':
		return p.dict(depth)
	case c == '(':
		return p.sequence(depth, '(', ')')
	case c == '[':
		return p.sequence(depth, '[', ']')
	case c == '\'' || c == '"':
		return p.text()
	case c == '-' || c >= '0' && c <= '9':
		return p.integer()
	}
	for word, v := range map[string]any{"True": true, "False": false, "None": nil} {
		if rest, ok := strings.CutPrefix(p.rest, word); ok {
			p.rest = rest
			return v, nil
		}
	}
	return nil, fmt.Errorf("%.20q where a value was expected", p.rest)
}

func (p *literal) dict(depth int) (any, error) {
	p.take('{')
	d := dict{}
	for !p.take('}') {
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if _, twice := d[name]; !ok || twice {
			return nil, fmt.Errorf("key %v is not a str, or is there twice", key)
		}
		if !p.take(':') {
			return nil, fmt.Errorf("no value for key %q", name)
		}
		p.space()
		before := p.rest
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d[name] = entry{v, before[:len(before)-len(p.rest)]}
		if !p.take(',') && !strings.HasPrefix(p.rest, "}") {
			return nil, fmt.Errorf("%.20q where ',' or '}' was expected", p.rest)
		}
	}
	return d, nil
}

// sequence reads a tuple or a list; one value in parentheses is that value.
func (p *literal) sequence(depth int, first, last byte) (any, error) {
	p.take(first)
	s := sequence{}
	comma := false
	for !p.take(last) {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		s = append(s, v)
		if comma = p.take(','); !comma && !strings.HasPrefix(p.rest, string(last)) {
			return nil, fmt.Errorf("%.20q where ',' or '%c' was expected", p.rest, last)
		}
	}
	if first == '(' && len(s) == 1 && !comma {
		return s[0], nil
	}
	return s, nil
}

func (p *literal) text() (any, error) {
	quote := p.rest[0]
	var b strings.Builder
	rest := p.rest[1:]
	for rest != "" {
		if rest[0] == quote {
			p.rest = rest[1:]
			return b.String(), nil
		}
		r, multibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return nil, fmt.Errorf("string %.20q: %w", rest, err)
		}
		if rest = tail; multibyte || r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
	}
	return nil, errors.New("a string does not end")
}

func (p *literal) integer() (any, error) {
	n := 1
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	i, err := strconv.Atoi(p.rest[:n])
	if err != nil {
		return nil, err
	}
	p.rest = strings.TrimPrefix(p.rest[n:], "L") // written by Python 2
	return i, nil
}
