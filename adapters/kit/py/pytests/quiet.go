package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// modules makes what testLoaded asks for. A lazy module says when it is loaded.
var modules = []string{
	"import sys, importlib.util, importlib.machinery, types",
	"ran = []",
	"class Loader:",
	"    def create_module(self, spec): return None",
	"    def exec_module(self, module): ran.append(module.__name__); module.x = 1",
	"spec = importlib.machinery.ModuleSpec('lazy', importlib.util.LazyLoader(Loader()))",
	"lazy = sys.modules['lazy'] = importlib.util.module_from_spec(spec); spec.loader.exec_module(lazy)",
	"partial = sys.modules['partial'] = types.ModuleType('partial')",
	"partial.__spec__ = importlib.machinery.ModuleSpec('partial', None); partial.__spec__._initializing = True",
	"class Other(types.ModuleType):",
	"    def __getattribute__(self, name): ran.append(name); return types.ModuleType.__getattribute__(self, name)",
	"other = sys.modules['other'] = Other('other'); other.__dict__['x'] = 2",
	"class Odd:",
	"    def __getattr__(self, name): ran.append(name); raise AttributeError(name)",
	"sys.modules['odd'] = Odd()",
	"del ran[:]",
}

// testLoaded asks for modules, and for their variables, without running code of theirs.
func (l *library) testLoaded(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(modules...)
		for name, want := range map[string]bool{"lazy": false, "partial": false, "other": true, "odd": true} {
			m, ok := p.Loaded(name)
			if ok != want {
				t.Errorf("%s is loaded: %v", name, ok)
			}
			if !ok {
				continue
			}
			if _, ok := p.Variable(m, "x"); ok != (name == "other") {
				t.Errorf("%s has an x: %v", name, ok)
			}
		}
		if n, err := p.Len(p.eval("ran")); err != nil || n != 0 {
			t.Errorf("code of the program's has run %d times, %v", n, err)
		}
		p.eval("(lazy.x, setattr(partial.__spec__, '_initializing', False))")
		for _, name := range []string{"lazy", "partial"} {
			if _, ok := p.Loaded(name); !ok {
				t.Errorf("%s is not loaded", name)
			}
		}
		p.exec("for name in 'lazy', 'partial', 'other', 'odd': del sys.modules[name]")
	})
}

// testNoMain: a program may remove __main__, and gets no other one.
func (l *library) testNoMain(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("import sys", "main = sys.modules.pop('__main__')")
		defer p.exec("sys.modules['__main__'] = main")
		_, err := p.Main()
		if !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Main: %v", err)
		}
		if truth, err := p.Bool(p.eval("'__main__' in sys.modules")); truth || err != nil {
			t.Errorf("there is one again: %v, %v", truth, err)
		}
	})
}

// testMetaclass: to describe a class, and to ask what it has, no metaclass is asked.
func (l *library) testMetaclass(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(
			"ran = []",
			"class Meta(type):",
			"    def __getattribute__(cls, name): ran.append(name); return type.__getattribute__(cls, name)",
			"    def __getattr__(cls, name): ran.append(name); return 1",
			"    __mro__ = property(lambda cls: ran.append('mro'))",
			"class Made(metaclass=Meta):",
			"    def has(self): pass",
			"Made.__module__ = 'pkg'",
			"made = Made()",
			"del ran[:]",
		)
		o := p.eval("made")
		if name, mro := p.TypeName(o), p.MRO(o); name != "pkg.Made" || strings.Join(mro, " ") != "pkg.Made object" {
			t.Errorf("it is %s, of %v", name, mro)
		}
		if !p.ClassHas(o, "has") || p.ClassHas(o, "missing") {
			t.Error("its class has other attributes")
		}
		if generic, err := p.GenericAttributes(o); !generic || err != nil {
			t.Errorf("it gets attributes as object does: %v, %v", generic, err)
		}
		if n, err := p.Len(p.eval("ran")); err != nil || n != 0 {
			t.Errorf("code of the metaclass's has run: %v, %v", p.text(p.must(p.Call(p.builtin("str"), []py.Object{p.eval("ran")}, nil))), err)
		}
	})
}

// testChangedClass: what a class does about attributes may change while a name is watched.
func (l *library) testChangedClass(t *testing.T) {
	l.do(t, func(p *python) {
		for _, kind := range []py.StepKind{py.StepAttribute, py.StepRegistered, py.StepRegisteredItem} {
			for change, same := range map[string]bool{
				"pass":                                  true,
				"Box.y = 1":                             true,
				"Box.__getattribute__ = lambda *a: 1":   false,
				"Base.__getattribute__ = lambda *a: 1":  false,
				"Box.__getattr__ = lambda *a: 1":        kind == py.StepAttribute,
				"Base.__getattr__ = lambda *a: 1":       kind == py.StepAttribute,
				"Box.__getitem__ = lambda *a: 1":        kind == py.StepAttribute,
				"box.__class__ = type('Other', (), {})": false,
			} {
				p.exec("class Base:", "    def __getattr__(self, name): raise AttributeError(name)",
					"class Box(Base): pass", "class A: pass", "box = Box(); box.x = a = A(); box.parts = {'x': a}")
				base := p.eval("box")
				steps := []py.Step{{Kind: kind, Class: p.Type(base), Key: p.must(p.NewKey("x")), Registries: []string{"parts"}}}
				o := p.eval("a")
				w, ok, err := p.Watch(base, steps, &py.Marks{Class: p.Type(o)}, o)
				if !ok || err != nil {
					t.Fatalf("Watch = %v, %v", ok, err)
				}
				if p.exec(change); p.Same(w) != same {
					t.Errorf("step %d, after %s: the same: %v", kind, change, !same)
				}
				w.Drop(p.GIL)
			}
		}
	})
}

// testExceptionsWithoutModule: a look does not import traceback, which may be a module of the program's.
func (l *library) testExceptionsWithoutModule(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(odd...)
		p.exec("import sys", "saved = sys.modules.pop('traceback', None)")
		defer p.exec("if saved: sys.modules['traceback'] = saved")
		_, err := p.try("throw(ValueError('no'))")
		e, ok := errors.AsType[*core.PythonError](err)
		const first, last = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n", ", in throw\nValueError: no\n"
		if !ok || !strings.HasPrefix(e.Traceback, first) || !strings.HasSuffix(e.Traceback, last) {
			t.Errorf("%#v", err)
		}
		p.exec("class Quiet(Exception):", "    __cause__ = property(lambda self: 1 / 0)")
		for expression, want := range map[string][]string{
			"chain()":                {"KeyError: 'first'\n\nThe above exception was the direct cause of", ":\n\nTraceback (most", "\nValueError: second\n"},
			"noted()":                {"ValueError: no\none\ntwo\n"},
			"handling()":             {"KeyError: 'first'\n\nDuring handling of the above exception, another", "\nValueError: second\n"},
			"throw(Quiet('itself'))": {"Quiet: itself\n"},
		} {
			_, err := p.try(expression)
			e, _ := errors.AsType[*core.PythonError](err)
			for rest := e.Traceback; len(want) > 0; want = want[1:] {
				_, behind, ok := strings.Cut(rest, want[0])
				if rest = behind; !ok || len(want) == 1 && rest != "" {
					t.Errorf("%s: %q does not go on with %q", expression, e.Traceback, want[0])
				}
			}
		}
		if truth, err := p.Bool(p.eval("'traceback' in sys.modules")); truth || err != nil {
			t.Errorf("it was imported: %v, %v", truth, err)
		}
	})
}
