package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// missingError says that a part of a name leads nowhere, which may change while the program runs.
type missingError struct {
	What   string
	Remedy string // or ""
}

func (e *missingError) Error() string { return e.What }

// globals is the dict of the program's global variables.
func globals(g *py.GIL) (py.Object, error) {
	main, err := g.Main()
	if err != nil {
		return 0, err
	}
	return g.Attr(main, "__dict__")
}

// global gives a global variable.
func (p *Program) global(g *py.GIL, name string) (py.Object, error) {
	dict, err := globals(g)
	if errors.Is(err, core.ErrNotFound) {
		return 0, &missingError{What: "the program has removed its module __main__"} // it may put it back, or end
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
	return 0, p.noGlobal(g, name, words)
}

// noGlobal says where a name was looked for, and what may have been meant: one of the global variables, of what was
// published, or a local variable.
func (p *Program) noGlobal(g *py.GIL, name string, variables []string) *missingError {
	locals, functions := p.localNames(g)
	known := p.published.Names()
	words := slices.Concat(variables, known)
	if whole, ok := locals[name]; ok {
		return &missingError{
			What:   "the program has no global variable, and has published nothing, of that name; a function that runs has such a variable",
			Remedy: prose.Meant(whole),
		}
	}
	missing := &missingError{What: "the program has no global variable, has published nothing, and runs no function with a variable, of that name; looked among " +
		lookedAmong(known, functions)}
	near := prose.Nearest(name, slices.Values(append(words, slices.Sorted(maps.Keys(locals))...)))
	if whole, ok := locals[near]; ok && !slices.Contains(words, near) {
		near = whole
	}
	switch _, loaded := g.Loaded(name); {
	case loaded && slices.Contains(variables, "sys"):
		missing.Remedy = fmt.Sprintf("a module has that name, which __main__ has not imported: write sys.modules[%q] for it", name)
	case near != "":
		missing.Remedy = prose.Meant(near)
	}
	return missing
}

// lookedAmong says where a name was looked for.
func lookedAmong(known, functions []string) string {
	const enough = 5
	several := func(what string, all []string) string {
		switch n := len(all); {
		case n == 0:
			return ""
		case n > enough:
			return fmt.Sprintf(", %s (%s and %d more)", what, strings.Join(all[:enough], ", "), n-enough)
		default:
			return fmt.Sprintf(", %s (%s)", what, strings.Join(all, ", "))
		}
	}
	return "the global variables of __main__" + several("what is published", known) + several("the variables of", functions)
}

// lead gives what a step from o leads to. where is how o was come by.
func (p *Program) lead(g *py.GIL, o py.Object, s names.Step, where string) (py.Object, error) {
	if s.Kind == names.Attr {
		return p.attribute(g, o, s, where)
	}
	if s.Kind == names.ByName {
		return p.leadByName(g, o, s, where)
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
		return 0, &missingError{
			What:   fmt.Sprintf("%s has no key %s", where, s),
			Remedy: prose.Remedy(s.Text, slices.Values(words), ""),
		}
	}
	v, err := g.Item(o, key)
	if py.Raised(err, "KeyError") || py.Raised(err, "IndexError") {
		missing := &missingError{What: fmt.Sprintf("%s has no %s", where, s)}
		if columns := p.columnNames(g, o); len(columns) > 0 {
			missing.What = fmt.Sprintf("%s, which is %s, has no column %s", where, g.TypeName(o), s)
			missing.Remedy = prose.Remedy(s.Text, slices.Values(columns), "")
		} else if n, err := g.Len(o); err == nil && s.Kind == names.Item {
			missing.What = fmt.Sprintf("%s has no %s, but a length of %d", where, s, n)
		}
		return 0, missing
	}
	if py.Raised(err, "TypeError") {
		return 0, &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("%s is %s: %w", where, g.TypeName(o), err)}
	}
	return v, err
}

// leadByName gives the item of a dict whose key is the very object that a name leads to. Another that is equal to it is not meant: arrays are
// compared element by element.
func (p *Program) leadByName(g *py.GIL, o py.Object, s names.Step, where string) (py.Object, error) {
	if g.Builtin(o) != "dict" {
		return 0, &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("%s is %s: only a dict is looked into by an object that has a name", where, g.TypeName(o)),
			Remedy: fmt.Sprintf("write %s[%q] if a text is meant", where, s.By),
		}
	}
	t, err := p.find(g, *s.By)
	if err != nil {
		return 0, err
	}
	t.close()
	key, err := p.whole(g, &t)
	if err != nil {
		return 0, err
	}
	if v, ok := g.DictByObject(o, key); ok {
		return v, nil
	}
	return 0, &missingError{
		What: fmt.Sprintf("%s has no key that is the object %s", where, s.By), Remedy: fmt.Sprintf("write %s[%q] if a text is meant", where, s.By),
	}
}

// key gives what Python has in the brackets of a step, or for the name of an attribute.
func key(g *py.GIL, s names.Step) (py.Object, error) {
	switch s.Kind {
	case names.Item:
		return g.NewInt(s.Item)
	case names.Slice:
		return sliceKey(g, s)
	default:
		return g.NewStr(s.Text)
	}
}

func sliceKey(g *py.GIL, s names.Step) (py.Object, error) {
	builtins, ok := g.Loaded("builtins")
	if !ok {
		return 0, &missingError{What: "the program has removed its module builtins"}
	}
	var err error
	parts := make([]py.Object, len(s.Of))
	for i, part := range s.Of {
		switch part.Kind {
		case names.At:
			parts[i], err = g.NewInt(part.At)
		case names.NewAxis:
			parts[i] = g.None()
		case names.Word:
			parts[i], err = g.NewStr(part.Text)
		case names.Rest:
			parts[i], err = g.Attr(builtins, "Ellipsis")
		default:
			parts[i], err = slice(g, builtins, part)
		}
		if err != nil {
			return 0, err
		}
	}
	if len(parts) == 1 && !s.IsTuple() {
		return parts[0], nil
	}
	return g.NewTuple(parts...)
}

// slice makes one of Python's.
func slice(g *py.GIL, builtins py.Object, s names.Subscript) (py.Object, error) {
	bounds := make([]py.Object, 0, 3)
	for _, b := range []names.Bound{s.Start, s.Stop, s.Step} {
		o, err := g.None(), error(nil)
		if b.Given {
			o, err = g.NewInt(b.N)
		}
		if err != nil {
			return 0, err
		}
		bounds = append(bounds, o)
	}
	return g.CallMethod(builtins, "slice", bounds, nil)
}

func (p *Program) attribute(g *py.GIL, o py.Object, s names.Step, where string) (py.Object, error) {
	why, err := p.unready(g, o, s)
	if err != nil {
		return 0, err
	}
	if why != "" {
		return 0, &missingError{What: fmt.Sprintf("%s%s cannot be read now: %s", where, s, why)}
	}
	v, ok, err := g.AttrOK(o, s.Text)
	if ok || err != nil {
		return v, err
	}
	missing := &missingError{What: fmt.Sprintf("%s, which is %s, has no attribute %s", where, g.TypeName(o), s.Text)}
	words, err := p.attributeNames(g, o)
	if err == nil {
		missing.Remedy = prose.Remedy(s.Text, slices.Values(words), "")
	}
	if slices.Contains(p.columnNames(g, o), s.Text) { // but the class has something of that name
		missing.Remedy = fmt.Sprintf("the column is %s%s", where, names.Step{Kind: names.Key, Text: s.Text})
	}
	if whole := p.nameInFrame(g, o, s.Text, where); whole != "" {
		missing.Remedy = prose.Meant(whole)
	}
	return 0, missing
}

// unready asks the adapters why what a step leads to cannot be read now; "": it can.
func (p *Program) unready(g *py.GIL, o py.Object, s names.Step) (why string, err error) {
	for a, err := range loadedAs[program.Guard](p, g) {
		if err == nil {
			why, err = a.as.Unready(g, a.env, o, s)
		}
		if why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// attributeNames gives the names of attributes that an object has, as far as that runs no code of the program's.
func (p *Program) attributeNames(g *py.GIL, o py.Object) (words []string, err error) {
	if dict, ok := g.OwnDict(o); ok {
		if words, err = keys(g, dict); err != nil {
			return nil, err
		}
	}
	words = append(words, p.columnNames(g, o)...)
	n := 0
	err = p.parts(g, o, 0, func(s names.Step, _ py.Object, _ int) bool {
		if s.Kind == names.Attr {
			words = append(words, s.Text)
		}
		n++
		return n < maxSuggested
	})
	return words, err
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

// notFound says what became of a name in the end.
func notFound(err error) error {
	missing, ok := errors.AsType[*missingError](err)
	if !ok {
		return err
	}
	return &core.Error{Kind: core.ErrNotFound, Err: err, Remedy: missing.Remedy}
}
