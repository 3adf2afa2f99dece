// Package lookup finds what the parts of a name lead to in a program.
package lookup

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// MissingError says that a part of a name leads nowhere, which may change while the program runs.
type MissingError struct {
	What   string
	Remedy string // or ""
}

func (e *MissingError) Error() string { return e.What }

// Globals is the dict of the program's global variables.
func Globals(g *py.GIL) (py.Object, error) {
	main, err := g.Main()
	if err != nil {
		return 0, err
	}
	return g.Attr(main, "__dict__")
}

// Global gives a global variable. others gives more names that might have been meant.
func Global(g *py.GIL, name string, others func() []string) (py.Object, error) {
	dict, err := Globals(g)
	if errors.Is(err, core.ErrNotFound) {
		return 0, &MissingError{What: "the program has removed its module __main__"} // it may put it back, or end
	}
	if err != nil {
		return 0, err
	}
	key, err := g.NewStr(name)
	if err != nil {
		return 0, err
	}
	o, ok, err := lookUp(g, dict, key)
	if ok || err != nil {
		return o, err
	}
	words, err := keys(g, dict)
	if err != nil {
		return 0, err
	}
	words = append(words, others()...)
	return 0, &MissingError{
		What:   "the program has no global variable, and has published nothing, of that name",
		Remedy: prose.Remedy(name, slices.Values(words), ""),
	}
}

// Follow gives what a step from o leads to. where is how o was come by.
func Follow(g *py.GIL, o py.Object, s names.Step, where string) (py.Object, error) {
	if s.Kind == names.Attr {
		return followAttr(g, o, s.Text, where)
	}
	key, err := key(g, s)
	if err != nil {
		return 0, err
	}
	if g.IsDict(o) {
		v, ok, err := lookUp(g, o, key)
		if ok || err != nil {
			return v, err
		}
		words, err := keys(g, o)
		if err != nil {
			return 0, err
		}
		return 0, &MissingError{
			What:   fmt.Sprintf("%s has no key %s", where, s),
			Remedy: prose.Remedy(s.Text, slices.Values(words), ""),
		}
	}
	v, err := g.Item(o, key)
	if py.Raised(err, "KeyError") || py.Raised(err, "IndexError") {
		missing := &MissingError{What: fmt.Sprintf("%s has no %s", where, s)}
		if n, err := g.Len(o); err == nil && s.Kind == names.Item {
			missing.What = fmt.Sprintf("%s has no %s, but a length of %d", where, s, n)
		}
		return 0, missing
	}
	if py.Raised(err, "TypeError") {
		return 0, &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("%s is %s: %w", where, g.TypeName(o), err)}
	}
	return v, err
}

func key(g *py.GIL, s names.Step) (py.Object, error) {
	if s.Kind == names.Item {
		return g.NewInt(s.Item)
	}
	return g.NewStr(s.Text)
}

func followAttr(g *py.GIL, o py.Object, name, where string) (py.Object, error) {
	v, ok, err := g.AttrOK(o, name)
	if ok || err != nil {
		return v, err
	}
	missing := &MissingError{What: fmt.Sprintf("%s, which is %s, has no attribute %s", where, g.TypeName(o), name)}
	if dict, ok, err := g.AttrOK(o, "__dict__"); ok && err == nil && g.IsDict(dict) {
		if words, err := keys(g, dict); err == nil {
			missing.Remedy = prose.Remedy(name, slices.Values(words), "")
		}
	}
	return 0, missing
}

// lookUp is dict[key] without the side effects that a subclass of dict may have on a missing key.
func lookUp(g *py.GIL, dict, key py.Object) (o py.Object, ok bool, err error) {
	has, err := g.CallMethod(dict, "__contains__", []py.Object{key}, nil)
	if err != nil {
		return 0, false, err
	}
	if ok, err = g.Bool(has); !ok || err != nil {
		return 0, false, err
	}
	o, err = g.Item(dict, key)
	if py.Raised(err, "KeyError") { // gone since, or a dict with ideas of its own
		return 0, false, nil
	}
	return o, err == nil, err
}

// maxSuggested bounds how many names are looked through for the one that was meant.
const maxSuggested = 1000

func keys(g *py.GIL, dict py.Object) ([]string, error) {
	items, err := g.DictItems(dict)
	if err != nil {
		return nil, err
	}
	var words []string
	for key := range items {
		if !g.IsStr(key) {
			continue
		}
		word, err := g.Text(key)
		if err != nil {
			return nil, err
		}
		if words = append(words, word); len(words) == maxSuggested {
			break
		}
	}
	return words, nil
}

// NotFound says what became of a name in the end.
func NotFound(err error) error {
	missing, ok := errors.AsType[*MissingError](err)
	if !ok {
		return err
	}
	return &core.Error{Kind: core.ErrNotFound, Err: err, Remedy: missing.Remedy}
}
