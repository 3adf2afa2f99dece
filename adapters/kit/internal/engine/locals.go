package engine

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// local gives a local variable of the innermost call of a function. The frame is let go before anything else happens, so
// that the function's variables end with the function.
func (p *Program) local(g *py.GIL, of names.Function, name string) (o py.Object, err error) {
	if err := p.interp.NoFrames(); err != nil {
		return 0, err
	}
	key, err := g.NewKey(name)
	if err != nil {
		return 0, err
	}
	return g.Result(func() (py.Object, error) {
		frames, err := p.framesOf(g, of)
		if err != nil {
			return 0, err
		}
		var running []string
		for f := range frames {
			if isOutside(f) {
				continue
			}
			if !isCalled(g, f, of) {
				running = append(running, f.Name())
				continue
			}
			if v, ok := f.Local(key); ok {
				return v, nil
			}
			return 0, unassigned(of, f, name)
		}
		return 0, &missingError{
			What: of.String() + " is not running", Remedy: prose.Remedy(lastPart(of.Name), slices.Values(running), ""),
		}
	})
}

// unassigned says why a function that runs has no such variable now.
func unassigned(of names.Function, f *py.Frame, name string) *missingError {
	all := f.Locals()
	if slices.Contains(all, name) {
		return &missingError{What: fmt.Sprintf("%s is running, and its variable %s has no value now", of, name)}
	}
	return &missingError{
		What:   fmt.Sprintf("%s is running, and has no local variable %s", of, name),
		Remedy: prose.Remedy(name, slices.Values(all), ""),
	}
}

func lastPart(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// threads are those that a function may run on.
type threads struct {
	all    bool
	main   bool
	idents []uint64
}

func (t threads) has(f *py.Frame) bool {
	return t.all || t.main && f.Main || f.Thread != 0 && slices.Contains(t.idents, f.Thread)
}

// framesOf gives what runs where a name says, the innermost first, as [py.GIL.Frames] does.
func (p *Program) framesOf(g *py.GIL, of names.Function) (iter.Seq[*py.Frame], error) {
	if of.Task != "" {
		return p.taskFrames(g, of.Task)
	}
	threads, err := p.threads(g, of)
	if err != nil {
		return nil, err
	}
	return func(yield func(*py.Frame) bool) {
		for f := range g.Frames() {
			if threads.has(f) && !yield(f) {
				return
			}
		}
	}, nil
}

// mainThreadName is the name that the main thread has in a program that has not imported threading.
const mainThreadName = "MainThread"

// threads gives the threads that a name means.
func (*Program) threads(g *py.GIL, of names.Function) (threads, error) {
	if of.Thread == "" {
		return threads{all: true}, nil
	}
	t := threads{}
	var found []string
	for ident, name := range threadNames(g) {
		if name == of.Thread {
			t.idents = append(t.idents, ident)
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		t.main, found = of.Thread == mainThreadName, []string{mainThreadName}
	}
	if len(t.idents) == 0 && !t.main {
		return t, &missingError{
			What:   fmt.Sprintf("the program has no thread %q", of.Thread),
			Remedy: prose.Remedy(of.Thread, slices.Values(found), ""),
		}
	}
	return t, nil
}

// threadNames gives the names of the threads that threading knows.
func threadNames(g *py.GIL) map[uint64]string {
	module, ok := g.Loaded("threading")
	if !ok {
		return nil
	}
	active, ok := g.Variable(module, "_active")
	if !ok || !g.IsDict(active) {
		return nil
	}
	items, err := g.DictItems(active)
	if err != nil {
		return nil
	}
	key, err := g.NewKey("_name")
	if err != nil {
		return nil
	}
	all := make(map[uint64]string)
	for ident, thread := range items {
		name, ok := g.Follow(thread, py.Step{Kind: py.StepAttribute, Class: g.Type(thread), Key: key})
		if !ok || !g.IsStr(name) || !g.IsInt(ident) {
			continue
		}
		n, err := g.Uint64(ident)
		if err != nil {
			continue
		}
		if text, err := g.Text(name); err == nil {
			all[n] = text
		}
	}
	return all
}

// isCalled reports whether a frame is a call of a function.
func isCalled(g *py.GIL, f *py.Frame, of names.Function) bool {
	if f.Name() != lastPart(of.Name) {
		return false
	}
	if of.Name == lastPart(of.Name) && of.Module == "" {
		return true
	}
	if qualified := f.Qualified(); qualified != "" {
		return of.Is(f.Module(), qualified)
	}
	return isDefined(g, f, of)
}

// isOutside reports whether a frame is no call of the program's: that of a module, whose variables are global, one of
// what imports modules, or one of the code that has started the program.
func isOutside(f *py.Frame) bool {
	const body, bootstrap = "<module>", "ndbridge"
	if f.Name() == body {
		return true
	}
	module := f.Module()
	return module == bootstrap || isImport(module)
}

// isImport reports whether a frame's module is one of what imports modules. It has one name until importlib is imported, and
// another then.
func isImport(module string) bool {
	switch module {
	case "_frozen_importlib", "importlib._bootstrap", "_frozen_importlib_external", "importlib._bootstrap_external":
		return true
	}
	return false
}

// importing reports whether the main thread imports a module.
func importing(g *py.GIL) bool {
	for f := range g.Frames() {
		if !f.Main {
			break
		}
		if isImport(f.Module()) {
			return true
		}
	}
	return false
}

// isDefined is isCalled for a Python whose code does not have its qualified name: the name must lead from the
// global variables of the frame to its code.
func isDefined(g *py.GIL, f *py.Frame, of names.Function) bool {
	name, parts := f.Module(), strings.Split(of.Name, ".")
	if of.Module != "" {
		return of.Module == name && leads(g, f, parts)
	}
	for i := range parts {
		before := strings.Join(parts[:i], ".")
		if (i == 0 || strings.HasSuffix("."+name, "."+before)) && leads(g, f, parts[i:]) {
			return true
		}
	}
	return false
}

func leads(g *py.GIL, f *py.Frame, parts []string) bool {
	o := f.Globals()
	for _, part := range parts {
		key, err := g.NewKey(part)
		if err != nil {
			return false
		}
		var ok bool
		if o, ok = g.Defined(o, key); !ok {
			return false
		}
	}
	code, ok := g.CodeOf(o)
	return ok && code == f.Code()
}

// errNoAssign says that a variable of a function cannot be set.
var errNoAssign = &core.Error{
	Kind: core.ErrUnsupported, Err: errors.New("only the function itself assigns to its local variables"),
	Remedy: "set a global variable, or an attribute or item of what the local variable is",
}
