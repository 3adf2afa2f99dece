package names

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Subscript is one part of an index, between its commas.
type Subscript struct {
	Kind SubscriptKind
	// At is the element that an axis is left at; of [Range] and the others it is 0.
	At int64
	// Text is that of a [Word].
	Text string
	// Of a Range: see [Bound].
	Start, Stop, Step Bound
}

// Bound is a number of a range; the zero Bound is one that is left out.
type Bound struct {
	Given bool
	N     int64
}

// SubscriptKind says what a subscript does to the axes of an array.
type SubscriptKind uint8

// The kinds of subscript.
const (
	At      SubscriptKind = iota // 7: one element of an axis, which goes
	Range                        // 1:10:2: some elements of an axis
	Rest                         // ...: as many axes as the others leave, whole
	NewAxis                      // None: one more axis, of one element
	Word                         // "text": of a tuple that is a key of a dict, and no part of an array
)

// String gives the one spelling of a subscript.
func (s Subscript) String() string {
	switch s.Kind {
	case At:
		return strconv.FormatInt(s.At, 10)
	case Rest:
		return "..."
	case NewAxis:
		return "None"
	case Word:
		return quote(s.Text)
	default:
		text := s.Start.String() + ":" + s.Stop.String()
		if s.Step.Given {
			text += ":" + s.Step.String()
		}
		return text
	}
}

// String gives the number, or nothing.
func (b Bound) String() string {
	if !b.Given {
		return ""
	}
	return strconv.FormatInt(b.N, 10)
}

func (b Bound) or(n int64) int64 {
	if b.Given {
		return b.N
	}
	return n
}

// Indices gives which elements of an axis of n a range means, as Python's slice.indices does: the first, the step to the
// next, and how many.
func (s Subscript) Indices(n int) (first, step, count int) {
	size, by := int64(n), s.Step.or(1)
	lowest, highest := int64(0), size
	if by < 0 {
		lowest, highest = -1, size-1
	}
	clamp := func(b Bound, otherwise int64) int64 {
		if !b.Given {
			return otherwise
		}
		if b.N < 0 {
			return max(b.N+size, lowest)
		}
		return min(b.N, highest)
	}
	var from, to int64
	if by < 0 {
		from, to = clamp(s.Start, highest), clamp(s.Stop, lowest)
		if from > to {
			count = int(-((from - to - 1) / by)) + 1
		}
	} else {
		from, to = clamp(s.Start, lowest), clamp(s.Stop, highest)
		if to > from {
			count = int((to-from-1)/by) + 1
		}
	}
	return int(from), int(by), count
}

// Index gives the parts of the index that a step is; none if it is no index of an array.
func (s Step) Index() []Subscript {
	switch {
	case !s.isIndex():
		return nil
	case s.Kind == Item:
		return []Subscript{{Kind: At, At: s.Item}}
	default:
		return s.Of
	}
}

// isIndex reports whether a step can be an index of an array.
func (s Step) isIndex() bool {
	return s.Kind == Item || s.Kind == Slice && !slices.ContainsFunc(s.Of, func(part Subscript) bool { return part.Kind == Word })
}

// Cut gives the part of an array that an index means, as NumPy does for an index of integers, slices, an ellipsis and new
// axes: the same elements in the same memory. The error wraps core.ErrNotFound for an integer outside its axis, and
// core.ErrLayout for what no array of that rank has, or elements that share bytes do not allow.
func Cut(l core.Layout, index []Subscript) (core.Layout, error) {
	used := 0
	for _, s := range index {
		if s.Kind == At || s.Kind == Range {
			used++
		}
	}
	rank := l.Rank()
	if used > rank {
		return core.Layout{}, cutError(core.ErrLayout, "too many indices: the array has %d axes, but %d were indexed", rank, used)
	}
	axis, of := 0, 0 // of the result, and of the array
	for _, s := range index {
		var err error
		switch s.Kind {
		case Rest:
			axis, of = axis+rank-used, of+rank-used
		case NewAxis:
			l, err = newAxis(l, axis)
			axis++
		case At:
			n, i := l.Dim(axis), s.At
			if i < int64(-n) || i >= int64(n) {
				return core.Layout{}, cutError(core.ErrNotFound, "index %d is out of bounds for axis %d with size %d", i, of, n)
			}
			if i < 0 {
				i += int64(n)
			}
			l, err = l.Select(axis, int(i))
			of++
		default:
			l, err = cutRange(l, axis, s)
			axis, of = axis+1, of+1
		}
		if err != nil {
			return core.Layout{}, err
		}
	}
	return l, nil
}

func cutRange(l core.Layout, axis int, s Subscript) (core.Layout, error) {
	first, step, count := s.Indices(l.Dim(axis))
	if count == 0 {
		return l.Sub(axis, 0, 0)
	}
	lo, hi := first, first+(count-1)*step
	l, err := l.Sub(axis, min(lo, hi), max(lo, hi)+1)
	if err != nil || count == 1 {
		return l, err
	}
	return l.Step(axis, step)
}

func newAxis(l core.Layout, axis int) (core.Layout, error) {
	spec := l.Spec()
	spec.Shape = slices.Insert(slices.Clone(spec.Shape), axis, 1)
	if spec.Strides != nil {
		spec.Strides = slices.Insert(slices.Clone(spec.Strides), axis, 0)
	}
	return core.NewLayout(spec)
}

func cutError(kind error, format string, args ...any) error {
	return &core.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// tuple reads a key in parentheses, which Python reads as it does without them.
func (r *parser) tuple() (Step, error) {
	r.rest = r.rest[1:]
	s, err := r.index(')')
	if err != nil {
		return Step{}, err
	}
	r.spaces()
	rest, ok := strings.CutPrefix(r.rest, ")")
	if !ok || !s.IsTuple() {
		return Step{}, errNoTuple()
	}
	r.rest = rest
	return s, nil
}

// IsTuple reports whether Python has a tuple of integers and strings in the brackets of a step.
func (s Step) IsTuple() bool {
	return s.Kind == Slice && !slices.ContainsFunc(s.Of, func(part Subscript) bool { return part.Kind != At && part.Kind != Word })
}

func errNoTuple() error {
	return errors.New("a tuple in a subscript has only integers and quoted strings")
}

// index reads what stands in brackets, up to end: integers, ranges, an ellipsis, None, quoted strings. One string alone is a [Key].
func (r *parser) index(end byte) (Step, error) {
	var all []Subscript
	comma := false
	for {
		r.spaces()
		if strings.HasPrefix(r.rest, string(end)) && comma {
			break
		}
		s, err := r.oneSubscript()
		if err != nil {
			return Step{}, err
		}
		if s.Kind == Rest && slices.ContainsFunc(all, func(s Subscript) bool { return s.Kind == Rest }) {
			return Step{}, errors.New("an index has only one ellipsis")
		}
		all = append(all, s)
		r.spaces()
		rest, more := strings.CutPrefix(r.rest, ",")
		if !more {
			break
		}
		comma, r.rest = true, rest
	}
	if alone := all[0]; len(all) == 1 && !comma && alone.Kind == At {
		return Step{Kind: Item, Item: alone.At}, nil
	} else if len(all) == 1 && !comma && alone.Kind == Word {
		return Step{Kind: Key, Text: alone.Text}, nil
	}
	s := Step{Kind: Slice, Of: all}
	if !s.isIndex() && !s.IsTuple() {
		return Step{}, errNoTuple()
	}
	return s, nil
}

func (r *parser) spaces() { r.rest = strings.TrimLeft(r.rest, " ") }

func (r *parser) oneSubscript() (s Subscript, err error) {
	for text, kind := range map[string]SubscriptKind{"...": Rest, "None": NewAxis} {
		if rest, ok := strings.CutPrefix(r.rest, text); ok {
			r.rest = rest
			return Subscript{Kind: kind}, nil
		}
	}
	if strings.HasPrefix(r.rest, `"`) || strings.HasPrefix(r.rest, "'") {
		s.Kind = Word
		s.Text, err = r.quoted(r.rest[0])
		return s, err
	}
	begin := r.rest
	if s.Start, err = r.number(); err != nil {
		return Subscript{}, err
	}
	rest, ok := strings.CutPrefix(r.rest, ":")
	switch {
	case !ok && !s.Start.Given:
		return Subscript{}, errors.New("a subscript is neither an integer, a slice, ..., None, a quoted string nor a name")
	case !ok && isSaturated(s.Start.N) && !fits(begin):
		return Subscript{}, fmt.Errorf("the subscript %s is too large", Clip(begin[:len(begin)-len(r.rest)]))
	case !ok:
		return Subscript{Kind: At, At: s.Start.N}, nil
	}
	s.Kind, r.rest = Range, rest
	if s.Stop, err = r.number(); err != nil {
		return Subscript{}, err
	}
	if rest, ok = strings.CutPrefix(r.rest, ":"); ok {
		r.rest = rest
		if s.Step, err = r.number(); err != nil {
			return Subscript{}, err
		}
	}
	if s.Step.Given && s.Step.N == 0 {
		return Subscript{}, errors.New("the step of a slice is zero")
	}
	return s, nil
}

func isSaturated(n int64) bool { return n == math.MaxInt64 || n == math.MinInt64 }

// fits reports whether the number that a text begins with is one of 64 bits.
func fits(text string) bool {
	_, err := strconv.ParseInt(strings.TrimRight(text[:numberEnd(text)], " "), 10, 64)
	return err == nil
}

func numberEnd(text string) int {
	return len(text) - len(strings.TrimLeft(strings.TrimPrefix(text, "-"), "0123456789"))
}

// number reads an integer, if there is one, with the spaces around it. One that does not fit is as large as can be: no
// axis has so many elements.
func (r *parser) number() (Bound, error) {
	r.spaces()
	end := numberEnd(r.rest)
	if end == 0 {
		return Bound{}, nil
	}
	n, err := strconv.ParseInt(r.rest[:end], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Bound{}, errors.New(`digits are missing after "-"`)
	}
	r.rest = r.rest[end:]
	r.spaces()
	return Bound{Given: true, N: n}, nil
}
