package engine

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
)

// arrayWord stands in the remedies of quirks for the name of the array that was asked for.
const arrayWord = "{array}"

// about says what was tried, on what, and by whom, in front of an error.
func about(op, name, adapter string, err error) error {
	if err == nil {
		return nil
	}
	e := core.Error{Kind: kindOf(err), Err: err}
	if inner, ok := errors.AsType[*core.Error](err); ok && error(inner) == err { //nolint:errorlint // the very same
		e = *inner
	}
	e.Op, e.Object, e.Adapter = op, cmp.Or(name, e.Object), cmp.Or(e.Adapter, adapter)
	return remedied(e.Object, &e)
}

// remedied puts the name of an array into the remedy of an error, if it is not "".
func remedied(name string, err error) error {
	e, ok := err.(*core.Error) //nolint:errorlint // what wraps one has a text of its own
	if !ok || name == "" || !strings.Contains(e.Remedy, arrayWord) {
		return err
	}
	named := *e
	named.Remedy = strings.ReplaceAll(e.Remedy, arrayWord, name)
	return &named
}

// kindOf finds the category of an error that may have none.
func kindOf(err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok && e.Kind != nil {
		return e.Kind
	}
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded, core.ErrPython} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return core.ErrUnavailable
}

// refused makes one error of several refusals, in the category of the first.
func refused(refusals []error) error {
	if len(refusals) == 1 {
		return refusals[0]
	}
	first := about("", "", "", refusals[0])
	e, _ := errors.AsType[*core.Error](first)
	all := *e
	all.Err = &refusedError{refusals}
	return &all
}

// refusedError tells of every refusal, but has the identity of the first only, since an error has
// one category.
type refusedError struct{ refusals []error }

func (e *refusedError) Error() string {
	var texts []string
	for _, r := range e.refusals {
		if inner, ok := errors.AsType[*core.Error](r); ok && inner.Err != nil {
			r = inner.Err
		}
		texts = append(texts, r.Error())
	}
	return strings.Join(texts, "; then ")
}

func (e *refusedError) Unwrap() error { return e.refusals[0] }

// noArrayError says of what type an object is that speaks no protocol of arrays.
type noArrayError string

func (e noArrayError) Error() string { return string(e) + " is not an array" }

// isNoArray reports whether an error is that one.
func isNoArray(err error) bool {
	e, ok := errors.AsType[*core.Error](err)
	if ok {
		_, ok = e.Err.(noArrayError) //nolint:errorlint // the very same
	}
	return ok
}

// isForCalls reports whether an object whose memory was asked for, with that error, is none that has any, but can be called. What a class
// says of memory is its objects'.
func isForCalls(g *py.GIL, o py.Object, err error) bool {
	return err != nil && (g.IsClass(o) || isNoArray(err) && g.IsCallable(o))
}

const anyArray = "name an array, or an object with DLPack, the array interface or the buffer protocol"

// instead gives the remedy of an error about an object that is no array: what of it is one.
func (p *Program) instead(g *py.GIL, o py.Object, err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok || !isNoArray(err) {
		return err
	}
	remedy := anyArray
	switch part, ok := p.partThatIsArray(g, o); {
	case g.IsNone(o):
		remedy = "look again when the program has put an array there"
	case g.IsInt(o), g.TypeName(o) == "float":
		remedy = "read it with Session.Value, or publish it"
	case ok:
		remedy = "name what of it is one, such as {array}" + part.String()
	case g.ClassHas(o, "__array__"):
		remedy = "its elements come by __array__, as a copy: publish numpy.asarray({array})"
	case g.IsCallable(o):
		remedy = "call it, with Session.Func or ndbridge call"
	}
	said := *e
	said.Remedy = remedy
	return &said
}

// partThatIsArray finds the first part of an object that is an array, and gives the steps that lead there.
func (p *Program) partThatIsArray(g *py.GIL, o py.Object) (part names.Path, ok bool) {
	if columns := p.columnNames(g, o); len(columns) > 0 {
		return part.With(names.Step{Kind: names.Key, Text: columns[0]}), true
	}
	n := 0
	err := p.parts(g, o, 0, func(s names.Step, each py.Object, _ int) bool {
		if (s.Kind != names.Attr || !strings.HasPrefix(s.Text, "_")) && p.kindOf(g, each) == array {
			if s.Kind == names.Key {
				part = part.With(p.wayToLocals(g, o)...)
			}
			part, ok = part.With(s), true
		}
		n++
		return !ok && n < maxSuggested
	})
	return part, ok && err == nil
}
