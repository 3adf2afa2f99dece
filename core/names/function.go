package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Function names a function while it runs: `main()`, `Trainer.fit()`, `pkg.train:Trainer.fit()` or
// `load(thread="loader")`. The zero Function names none.
type Function struct {
	// Module is the full name of the function's module, or "". With it, Name is all of the qualified name.
	Module string
	// Name is the qualified name, as Python has it but without "<locals>", or the last parts of it. Without a Module,
	// parts of the module's name may stand before it: "train.Trainer.fit".
	Name   string
	Thread string // the name of the thread that runs it; "": any
	Task   string // the name of the asyncio task that it is of, which may be waiting; "": none, it runs
}

// String gives the one spelling of a function that runs.
func (f Function) String() string {
	var b strings.Builder
	if f.Module != "" {
		b.WriteString(f.Module)
		b.WriteByte(':')
	}
	b.WriteString(f.Name)
	b.WriteByte('(')
	if f.Thread != "" {
		b.WriteString("thread=")
		b.WriteString(quote(f.Thread))
	}
	if f.Task != "" {
		b.WriteString("task=")
		b.WriteString(quote(f.Task))
	}
	b.WriteByte(')')
	return b.String()
}

// Is reports whether f means the function of a module that has a qualified name.
func (f Function) Is(module, qualified string) bool {
	qualified = Qualified(qualified)
	if f.Module != "" {
		return f.Module == module && f.Name == qualified
	}
	return strings.HasSuffix("."+module+"."+qualified, "."+f.Name)
}

// locals is what Python writes into the qualified name of what a function defines.
const locals = "<locals>"

// Qualified gives a function's qualified name as a [Function] has it.
func Qualified(name string) string { return strings.ReplaceAll(name, locals+".", "") }

// function reads the function that a name may begin with, and the dot behind it, or the module that is to be imported, and the colon.
func (r *parser) function() (f Function, err error) {
	defer func(globs bool) { r.globs = globs }(r.globs)
	begin := r.rest
	r.globs = false
	parts, ok := r.parts()
	if ok && strings.HasPrefix(r.rest, ":") {
		f.Module = strings.Join(parts, ".")
		r.rest = r.rest[1:]
		own := r.rest
		parts, ok = r.parts()
		if r.inner == 0 && !strings.HasPrefix(r.rest, "(") && !strings.Contains(f.Module, "<") {
			if !r.imports {
				return Function{}, errors.New("a module is imported for functions alone, when they are looked up to be called")
			}
			r.module, r.rest = f.Module, own
			return Function{}, nil
		}
	}
	if !ok || !strings.HasPrefix(r.rest, "(") {
		r.rest = begin
		return Function{}, nil
	}
	f.Name = strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == locals }), ".")
	if f.Name == "" || strings.Contains(f.Module, "<") {
		return Function{}, errors.New("the name of a function is missing")
	}
	r.rest = strings.TrimLeft(r.rest[1:], " ")
	if f.Thread, err = r.named("thread"); err == nil && f.Thread == "" {
		f.Task, err = r.named("task")
	}
	if err != nil {
		return Function{}, err
	}
	if !strings.HasPrefix(r.rest, ")") {
		return Function{}, errors.New(`brackets of a function hold something else than thread="its name" or task="its name": nothing is called`)
	}
	if r.rest = r.rest[1:]; !strings.HasPrefix(r.rest, ".") {
		return Function{}, fmt.Errorf("a local variable is missing: %s.x", f)
	}
	r.rest = r.rest[1:]
	return f, nil
}

// parts reads identifiers, or such words as <lambda>, with dots between them.
func (r *parser) parts() (parts []string, ok bool) {
	for {
		open, end := "", ""
		if strings.HasPrefix(r.rest, "<") {
			open, end = "<", ">"
		}
		r.rest = r.rest[len(open):]
		part, err := r.identifier()
		if err != nil || !strings.HasPrefix(r.rest, end) {
			return nil, false
		}
		r.rest = r.rest[len(end):]
		if parts = append(parts, open+part+end); !strings.HasPrefix(r.rest, ".") {
			return parts, true
		}
		r.rest = r.rest[1:]
	}
}

// named reads what="name", if it is there, and spaces.
func (r *parser) named(what string) (name string, err error) {
	rest, ok := strings.CutPrefix(r.rest, what)
	if !ok {
		return "", nil
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), "=")
	if rest = strings.TrimLeft(rest, " "); !ok || rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", nil
	}
	r.rest = rest
	if name, err = r.quoted(rest[0]); err == nil && name == "" {
		err = fmt.Errorf("the name of a %s is empty", what)
	}
	r.rest = strings.TrimLeft(r.rest, " ")
	return name, err
}
