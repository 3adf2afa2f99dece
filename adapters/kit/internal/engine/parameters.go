package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/pyvalues"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// usualFramework is whose arrays a function gets that does not say what it takes.
const usualFramework = "numpy"

// maxWrapped bounds how many decorators are looked through for a function's annotations.
const maxWrapped = 16

// parameters says whose arrays a function takes.
type parameters struct {
	usual string   // of those that have no annotation
	names []string // of the positional parameters
	all   []string // of all parameters that have a name of their own
	rest  string   // the parameter that takes more by position: *args
	more  string   // that which takes more by name: **kwargs
	of    map[string]string
}

// at gives the framework of the argument at a position, and of gives that of a keyword.
func (p *parameters) at(i int) string {
	if i < len(p.names) {
		return p.named(p.names[i])
	}
	return p.named(p.rest)
}

func (p *parameters) keyword(name string) string {
	if !slices.Contains(p.all, name) {
		name = p.more
	}
	return p.named(name)
}

// named gives that of a parameter; "" is none.
func (p *parameters) named(name string) string {
	if f, ok := p.of[name]; ok && name != "" {
		return f
	}
	return p.usual
}

// parameters reads the annotations of a function, without evaluating those that are text. asked is the framework that the
// host has chosen, or "": for all arguments, or, as the usual one, for those of which the function does not say it. What cannot be read
// says nothing.
func (p *Program) parameters(g *py.GIL, o py.Object, asked string, usual bool) (out parameters, err error) {
	if known := append(p.importers(), Python); asked != "" && !slices.Contains(known, asked) {
		return out, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("no arrays of %q can be made of a host's memory", asked),
			Remedy: "one of: " + strings.Join(known, ", "),
		}
	}
	if asked != "" && !usual {
		return parameters{usual: asked}, nil
	}
	out = parameters{usual: cmp.Or(asked, usualFramework), of: make(map[string]string)}
	if f := frameworkOf(g, o); slices.Contains(p.importers(), f) { // such as a torch.nn.Module
		out.usual = f
	}
	function, code, skip, ok := p.definition(g, o)
	if !ok {
		return out, nil
	}
	if err = out.read(g, code, skip); err != nil {
		return parameters{}, err
	}
	annotations, ok := p.quietAttr(g, function, "__annotations__")
	if !ok || !g.IsDict(annotations) {
		return out, nil
	}
	items, err := g.DictItems(annotations)
	if err != nil {
		return parameters{}, err
	}
	for key, annotation := range items {
		if !g.IsStr(key) {
			continue
		}
		name, err := g.Text(key)
		if err != nil {
			return parameters{}, err
		}
		if f := p.annotated(g, function, annotation); f != "" {
			out.of[name] = f
		}
	}
	return out, nil
}

// definition gives the function in Python behind what can be called, its code, and how many of its first parameters are
// bound. ok is false if there is none, as behind what is written in C.
func (p *Program) definition(g *py.GIL, o py.Object) (function, code py.Object, skip int, ok bool) {
	for _, name := range []string{"", "forward", "__call__"} { // the latter of what is no function itself
		function, skip = o, 0
		if name != "" {
			if function, ok = p.quietAttr(g, o, name); !ok {
				continue
			}
		}
		for range maxWrapped { // functools.partial
			inner, ok := p.quietAttr(g, function, "func")
			given, some := p.quietAttr(g, function, "args")
			if !ok || !some || !g.IsTuple(given) {
				break
			}
			n, err := g.Len(given)
			if err != nil {
				return 0, 0, 0, false
			}
			function, skip = inner, skip+n
		}
		if inner, ok := p.quietAttr(g, function, "__func__"); ok {
			function, skip = inner, skip+1
		}
		for range maxWrapped {
			inner, ok := p.quietAttr(g, function, "__wrapped__")
			if !ok {
				break
			}
			function = inner
		}
		if code, ok = p.quietAttr(g, function, "__code__"); ok {
			return function, code, skip, true
		}
	}
	return 0, 0, 0, false
}

// quietAttr gives o.name, or false if that is not there or fails.
func (p *Program) quietAttr(g *py.GIL, o py.Object, name string) (py.Object, bool) {
	v, ok, err := g.AttrOK(o, name)
	return v, ok && err == nil
}

const takesMore, takesNamed = 4, 8 // flags of a code object: *args and **kwargs

// read reads the names of a code object's parameters, but for the first skip.
func (p *parameters) read(g *py.GIL, code py.Object, skip int) error {
	var n [3]int64
	for i, name := range []string{"co_argcount", "co_kwonlyargcount", "co_flags"} {
		o, err := g.Attr(code, name)
		if err != nil {
			return err
		}
		if n[i], err = g.Int64(o); err != nil {
			return err
		}
	}
	variables, err := g.Attr(code, "co_varnames")
	if err != nil {
		return err
	}
	next := skip
	name := func() (text string) {
		var o py.Object
		if o, err = g.ItemInt(variables, next); err != nil {
			return ""
		}
		text, err = g.Text(o)
		next++
		return text
	}
	for next < int(n[0]+n[1]) && err == nil {
		p.all = append(p.all, name())
	}
	p.names = p.all[:max(0, min(int(n[0])-skip, len(p.all)))]
	if n[2]&takesMore != 0 && err == nil {
		p.rest = name()
	}
	if n[2]&takesNamed != 0 && err == nil {
		p.more = name()
	}
	return err
}

// importers are the frameworks of the adapters that make arrays over memory of others.
func (p *Program) importers() []string {
	var names []string
	for _, f := range p.frameworks {
		if _, ok := f.adapter.(program.Importer); ok {
			names = append(names, f.name)
		}
	}
	return names
}

// annotated gives the framework that an annotation names, or "".
func (p *Program) annotated(g *py.GIL, function, annotation py.Object) string {
	if g.IsStr(annotation) {
		return p.annotatedText(g, function, annotation)
	}
	if f := p.moduleFramework(g, annotation); f != "" {
		return f
	}
	args, ok := p.quietAttr(g, annotation, "__args__") // of a union
	if !ok || !g.IsTuple(args) {
		return ""
	}
	n, err := g.Len(args)
	if err != nil {
		return ""
	}
	for i := range n {
		if arg, err := g.ItemInt(args, i); err == nil {
			if f := p.moduleFramework(g, arg); f != "" {
				return f
			}
		}
	}
	return ""
}

// annotatedText is annotated for text such as "torch.Tensor | None": its names are those of the function's module.
func (p *Program) annotatedText(g *py.GIL, function, annotation py.Object) string {
	text, err := g.Text(annotation)
	if err != nil {
		return ""
	}
	globals, ok := p.quietAttr(g, function, "__globals__")
	if !ok || !g.IsDict(globals) {
		return ""
	}
	for _, path := range strings.FieldsFunc(text, func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		root, _, _ := strings.Cut(path, ".")
		key, err := g.NewStr(root)
		if err != nil {
			return ""
		}
		o, ok, err := lookUp(g, globals, key)
		if !ok || err != nil {
			continue
		}
		f := p.moduleFramework(g, o)
		if g.ExactType(o) == "module" {
			f = p.known(g, o, "__name__")
		}
		if f != "" {
			return f
		}
	}
	return ""
}

// moduleFramework gives the framework whose module a class comes from.
func (p *Program) moduleFramework(g *py.GIL, class py.Object) string {
	return p.known(g, class, "__module__")
}

// known gives the importing framework that an attribute names.
func (p *Program) known(g *py.GIL, o py.Object, attr string) string {
	name, ok := p.quietAttr(g, o, attr)
	if !ok || !g.IsStr(name) {
		return ""
	}
	text, err := g.Text(name)
	if err != nil {
		return ""
	}
	root, _, _ := strings.Cut(text, ".")
	if root == "jaxlib" {
		root = "jax"
	}
	if slices.Contains(p.importers(), root) {
		return root
	}
	return ""
}

// arguments builds what a function is called with: a tuple and a dict, or 0 for none.
func (w *worker) arguments(g *py.GIL, f *function, r *calls.Request) (args, kw py.Object, err error) {
	reader := values.NewReader(r.Values)
	both, err := reader.Next()
	if err != nil {
		return 0, 0, err
	}
	if both.Kind != values.KindTuple || both.N != 2 {
		return 0, 0, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("arguments that are a %v of %d", both.Kind, both.N)}
	}
	list, err := reader.Next()
	if err != nil {
		return 0, 0, err
	}
	positional := make([]py.Object, list.Items())
	for i := range positional {
		if positional[i], err = w.build(g, reader, r, f.takes.at(i)); err != nil {
			return 0, 0, values.Located("arguments", values.At(values.Index(i), err))
		}
	}
	if args, err = g.NewTuple(positional...); err != nil {
		return 0, 0, err
	}
	named, err := reader.Next()
	if err != nil || named.N == 0 {
		return args, 0, err
	}
	kw, err = w.keywords(g, f, r, reader, named)
	return args, kw, err
}

func (w *worker) keywords(g *py.GIL, f *function, r *calls.Request, reader *values.Reader, named values.Token) (py.Object, error) {
	kw, err := g.NewDict()
	if err != nil {
		return 0, err
	}
	for range named.N {
		name, err := reader.Next()
		if err != nil {
			return 0, err
		}
		key, err := g.NewStr(string(name.Bytes))
		if err != nil {
			return 0, err
		}
		o, err := w.build(g, reader, r, f.takes.keyword(string(name.Bytes)))
		if err != nil {
			return 0, values.Located("arguments", values.At(values.Key(string(name.Bytes)), err))
		}
		if err := g.SetItem(kw, key, o); err != nil {
			return 0, err
		}
	}
	return kw, nil
}

// build makes the next value of a form. The arrays in it become a framework's.
func (w *worker) build(g *py.GIL, reader *values.Reader, r *calls.Request, framework string) (py.Object, error) {
	return pyvalues.Build(g, reader, func(g *py.GIL, i int) (py.Object, error) { return w.argument(g, r, i, framework) })
}

// argument makes an array that a request carries.
func (w *worker) argument(g *py.GIL, r *calls.Request, i int, framework string) (py.Object, error) {
	if i < 0 || i >= len(r.Arrays) {
		return 0, &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("array %d of %d", i, len(r.Arrays))}
	}
	a := &r.Arrays[i]
	if a.Lease != 0 {
		return w.leased(g, a)
	}
	s, err := w.segment(a.Segment)
	if err != nil {
		return 0, err
	}
	exporter, err := s.Export(g, a.Layout, a.ReadOnly, a.Held())
	if err != nil {
		return 0, err
	}
	if framework == "" {
		framework = usualFramework
	}
	if _, onGPU := s.Device(); onGPU && framework == usualFramework {
		return 0, errNotOfNumPy
	}
	if _, loaded := g.Loaded(framework); !loaded && framework != Python {
		switch _, err := g.Import(framework); { // as the function itself would
		case framework == usualFramework && r.Framework == "" && py.Raised(err, "ModuleNotFoundError"):
			framework = Python
		case err != nil:
			return 0, err
		}
	}
	return w.Import(g, framework, exporter, a.Layout, a.ReadOnly)
}
