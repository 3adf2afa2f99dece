package main

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// do runs a test's body with the GIL held.
func (l *library) do(t *testing.T, f func(p *python)) {
	t.Helper()
	err := l.interp.Do(t.Context(), func(g *py.GIL) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%v\n%s", r, debug.Stack())
			}
		}()
		p := &python{T: t, GIL: g}
		p.namespace = p.must(g.Call(p.builtin("dict"), nil, nil))
		f(p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// python is the interpreter in a test's hands. Its own methods stop the test at what fails; since
// the test's goroutine is not the one that holds the GIL, they do so by panicking.
type python struct {
	*testing.T
	*py.GIL
	namespace py.Object
}

func (p *python) must(o py.Object, err error) py.Object {
	if err != nil {
		panic(err)
	}
	return o
}

func (p *python) builtin(name string) py.Object {
	return p.must(p.Attr(p.must(p.Import("builtins")), name))
}

// try evaluates an expression.
func (p *python) try(expression string) (py.Object, error) {
	return p.Call(p.builtin("eval"), []py.Object{p.must(p.NewStr(expression)), p.namespace}, nil)
}

func (p *python) eval(expression string) py.Object { return p.must(p.try(expression)) }

// exec runs statements, whose names later expressions see.
func (p *python) exec(lines ...string) {
	code := p.must(p.NewStr(strings.Join(lines, "\n")))
	p.must(p.Call(p.builtin("exec"), []py.Object{code, p.namespace}, nil))
}

// wantRaised checks that an error is a Python exception of this type.
func (p *python) wantRaised(what string, err error, want string) {
	p.Helper()
	e, ok := errors.AsType[*core.PythonError](err)
	if !ok || e.Type != want || !errors.Is(err, core.ErrPython) {
		p.Errorf("%s: error %v, want a %s", what, err, want)
	}
}

// texts gives what repr says of objects.
func (p *python) texts(items ...py.Object) string {
	var all []string
	for _, o := range items {
		s, err := p.Repr(o)
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return strings.Join(all, ",")
}

func (l *library) testDescribe(t *testing.T) {
	l.do(t, func(p *python) {
		version, err := p.Text(p.eval("'.'.join(map(str, __import__('sys').version_info[:3]))"))
		if err != nil || !strings.HasPrefix(l.interp.Version(), version) {
			t.Errorf("version %q, want %q, %v", l.interp.Version(), version, err)
		}
		executable, err := p.Text(p.eval("__import__('sys').executable"))
		if err != nil || l.interp.Executable() != executable || executable == "" {
			t.Errorf("executable %q, want %q, %v", l.interp.Executable(), executable, err)
		}
		if l.interp.Implementation() != "cpython" {
			t.Errorf("implementation %q", l.interp.Implementation())
		}
	})
}

func (l *library) testNumbers(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("class I:", "    def __index__(self): return 7", "class B:", "    def __bool__(self): raise OSError")
		for expression, want := range map[string]int64{
			"0": 0, "-1": -1, "True": 1, "I()": 7, "2**63-1": math.MaxInt64, "-2**63": math.MinInt64,
		} {
			if got, err := p.Int64(p.eval(expression)); got != want || err != nil {
				t.Errorf("Int64(%s) = %d, %v", expression, got, err)
			}
		}
		for expression, want := range map[string]string{
			"2**63": "OverflowError", "1.0": "TypeError", "'1'": "TypeError", "None": "TypeError",
		} {
			_, err := p.Int64(p.eval(expression))
			p.wantRaised("Int64 "+expression, err, want)
		}
		for expression, want := range map[string]uint64{"0": 0, "I()": 7, "2**64-1": math.MaxUint64} {
			if got, err := p.Uint64(p.eval(expression)); got != want || err != nil {
				t.Errorf("Uint64(%s) = %d, %v", expression, got, err)
			}
		}
		for expression, want := range map[string]string{"-1": "OverflowError", "2**64": "OverflowError", "1.5": "TypeError"} {
			_, err := p.Uint64(p.eval(expression))
			p.wantRaised("Uint64 "+expression, err, want)
		}
		for expression, want := range map[string]float64{"-1.0": -1, "3": 3, "1e300": 1e300} {
			if got, err := p.Float64(p.eval(expression)); got != want || err != nil {
				t.Errorf("Float64(%s) = %g, %v", expression, got, err)
			}
		}
		_, err := p.Float64(p.eval("'1'"))
		p.wantRaised("Float64", err, "TypeError")
		for expression, want := range map[string]bool{"0": false, "[]": false, "'x'": true, "object()": true} {
			if got, err := p.Bool(p.eval(expression)); got != want || err != nil {
				t.Errorf("Bool(%s) = %t, %v", expression, got, err)
			}
		}
		_, err = p.Bool(p.eval("B()"))
		p.wantRaised("Bool", err, "OSError")
		for _, v := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
			if got, err := p.Int64(p.must(p.NewInt(v))); got != v || err != nil {
				t.Errorf("NewInt(%d) is %d, %v", v, got, err)
			}
		}
		if got, err := p.Uint64(p.must(p.NewUint(math.MaxUint64))); got != math.MaxUint64 || err != nil {
			t.Errorf("NewUint: %d, %v", got, err)
		}
	})
}

func (l *library) testText(t *testing.T) {
	l.do(t, func(p *python) {
		for _, s := range []string{"", "a", "\u00e9\u20ac\U0001f600", "a\x00b", strings.Repeat("x", 1<<20)} {
			if got, err := p.Text(p.must(p.NewStr(s))); got != s || err != nil {
				t.Errorf("%.10q became %.10q, %v", s, got, err)
			}
		}
		if got, err := p.Text(p.eval(`'a\udc80b'`)); got != `a\udc80b` || err != nil {
			t.Errorf("a lone surrogate became %q, %v", got, err)
		}
		_, err := p.NewStr("\xff")
		p.wantRaised("NewStr", err, "UnicodeDecodeError")
		_, err = p.Text(p.eval("b'bytes'"))
		p.wantRaised("Text", err, "TypeError")
		p.exec("class S:", "    def __str__(self): return 's'", "    def __repr__(self): 1/0")
		if got, err := p.Str(p.eval("S()")); got != "s" || err != nil {
			t.Errorf("Str: %q, %v", got, err)
		}
		_, err = p.Repr(p.eval("S()"))
		p.wantRaised("Repr", err, "ZeroDivisionError")
		if got, err := p.Repr(p.eval("['x']")); got != "['x']" || err != nil {
			t.Errorf("Repr: %q, %v", got, err)
		}
	})
}

func (l *library) testKinds(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("import ctypes", "class D(dict): pass", "class T(tuple): pass", "class L(list): pass", "class S(str): pass",
			"class Liar:", "    __class__ = dict",
			"new = ctypes.pythonapi.PyCapsule_New", "new.restype = ctypes.py_object",
			"new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]")
		for expression, want := range map[string]string{
			"None": "none", "True": "bool int", "1": "int", "'x'": "str", "S()": "str", "(1,)": "tuple",
			"T()": "tuple", "[]": "list", "L()": "list", "{}": "dict", "D()": "dict", "Liar()": "", "len": "callable",
			"dict": "callable", "new(1, None, None)": "capsule", "1.0": "", "b''": "",
		} {
			o := p.eval(expression)
			var got []string
			for kind, is := range map[string]bool{
				"none": p.IsNone(o), "bool": p.IsBool(o), "int": p.IsInt(o), "str": p.IsStr(o), "tuple": p.IsTuple(o),
				"list": p.IsList(o), "dict": p.IsDict(o), "callable": p.IsCallable(o), "capsule": p.IsCapsule(o),
			} {
				if is {
					got = append(got, kind)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != want {
				t.Errorf("%s is %q, want %q", expression, got, want)
			}
		}
		if !p.IsNone(p.None()) || !p.IsBool(p.True()) || !p.IsBool(p.False()) || p.True() == p.False() {
			t.Error("the constants are not themselves")
		}
	})
}

func (l *library) testContainers(t *testing.T) {
	l.do(t, func(p *python) {
		tuple, err := p.TupleItems(p.eval("(1, 'a', None)"))
		if p.texts(tuple...) != "1,'a',None" || err != nil {
			t.Errorf("tuple: %v, %v", p.texts(tuple...), err)
		}
		_, err = p.TupleItems(p.eval("[1]"))
		p.wantRaised("TupleItems", err, "SystemError")
		list := p.eval("[[1], [2]]")
		items, err := p.ListItems(list)
		p.must(p.CallMethod(list, "clear", nil, nil)) // the items must outlive this
		if p.texts(items...) != "[1],[2]" || err != nil {
			t.Errorf("list: %v, %v", p.texts(items...), err)
		}
		_, err = p.ListItems(p.eval("(1,)"))
		p.wantRaised("ListItems", err, "SystemError")

		dict := p.eval("{'b': [1], 'a': [2], 3: [4]}")
		pairs, err := p.DictItems(dict)
		if err != nil {
			panic(err)
		}
		var got []py.Object
		for key, value := range pairs {
			p.must(p.CallMethod(dict, "clear", nil, nil))
			got = append(got, key, value)
		}
		if p.texts(got...) != "'b',[1],'a',[2],3,[4]" {
			t.Errorf("dict: %v", p.texts(got...))
		}
		for range pairs {
			break // leaving early is allowed
		}
		_, err = p.DictItems(p.eval("[]"))
		p.wantRaised("DictItems", err, "SystemError")
	})
}

func (l *library) testItems(t *testing.T) {
	l.do(t, func(p *python) {
		if n, err := p.Len(p.eval("'abc'")); n != 3 || err != nil {
			t.Errorf("Len: %d, %v", n, err)
		}
		_, err := p.Len(p.eval("1"))
		p.wantRaised("Len", err, "TypeError")
		if o, err := p.ItemInt(p.eval("[10, 11]"), -1); err != nil || p.texts(o) != "11" {
			t.Errorf("ItemInt: %v", err)
		}
		_, err = p.ItemInt(p.eval("[]"), 0)
		p.wantRaised("ItemInt", err, "IndexError")
		_, err = p.ItemStr(p.eval("{}"), "k")
		p.wantRaised("ItemStr", err, "KeyError")
		if o := p.must(p.NewTuple(p.None(), p.True())); p.texts(o, p.must(p.NewTuple())) != "(None, True),()" {
			t.Errorf("NewTuple: %s", p.texts(o))
		}
	})
}

func (l *library) testAttributes(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("class A:", "    x = 1",
			"    @property", "    def gone(self): raise AttributeError('inside')",
			"    @property", "    def broken(self): raise ValueError('no')")
		a := p.eval("A()")
		if _, ok, err := p.AttrOK(a, "x"); !ok || err != nil {
			t.Errorf("x: %t, %v", ok, err)
		}
		for _, name := range []string{"y", "gone", "", "\u00e9", "a\x00b"} {
			if _, ok, err := p.AttrOK(a, name); ok || err != nil {
				t.Errorf("%q: %t, %v", name, ok, err)
			}
			_, err := p.Attr(a, name)
			p.wantRaised("Attr", err, "AttributeError")
		}
		_, _, err := p.AttrOK(a, "broken")
		p.wantRaised("AttrOK", err, "ValueError")
		_, _, err = p.AttrOK(a, "\xff")
		p.wantRaised("AttrOK", err, "UnicodeDecodeError")
	})
}

func (l *library) testCalls(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("def f(a, b=2, *, c=3): return (a, b, c)", "class C:", "    def m(self, *a, **k): return a, k")
		one, five := p.must(p.NewInt(1)), p.must(p.NewInt(5))
		for want, call := range map[string]func() (py.Object, error){
			"(1, 2, 3)": func() (py.Object, error) { return p.Call(p.eval("f"), []py.Object{one}, nil) },
			"(1, 2, 5)": func() (py.Object, error) {
				return p.Call(p.eval("f"), []py.Object{one}, []py.KW{{Name: "c", Value: five}})
			},
			"((1,), {'k': 5})": func() (py.Object, error) {
				return p.CallMethod(p.eval("C()"), "m", []py.Object{one}, []py.KW{{Name: "k", Value: five}})
			},
			"((), {})": func() (py.Object, error) { return p.CallMethod(p.eval("C()"), "m", nil, nil) },
			"((), {'\u00e9': 1})": func() (py.Object, error) {
				return p.CallMethod(p.eval("C()"), "m", nil, []py.KW{{Name: "\u00e9", Value: one}})
			},
		} {
			if got, err := p.Repr(p.must(call())); got != want || err != nil {
				t.Errorf("got %s, want %s, %v", got, want, err)
			}
		}
		_, err := p.Call(p.eval("f"), nil, nil)
		p.wantRaised("missing argument", err, "TypeError")
		_, err = p.Call(one, nil, nil)
		p.wantRaised("not callable", err, "TypeError")
		_, err = p.CallMethod(one, "nothing", nil, nil)
		p.wantRaised("no method", err, "AttributeError")
	})
}

func (l *library) testModules(t *testing.T) {
	l.do(t, func(p *python) {
		if name, err := p.Text(p.must(p.Attr(p.must(p.Main()), "__name__"))); name != "__main__" || err != nil {
			t.Errorf("Main: %q, %v", name, err)
		}
		if name, err := p.Text(p.must(p.Attr(p.must(p.Import("os.path")), "__name__"))); name != "posixpath" || err != nil {
			t.Errorf("Import: %q, %v", name, err)
		}
		_, err := p.Import("no_such_module")
		p.wantRaised("Import", err, "ModuleNotFoundError")
		if _, ok := p.Loaded("xml.dom.minidom"); ok {
			t.Error("Loaded finds what was not imported")
		}
		p.must(p.Import("xml.dom.minidom"))
		if _, ok := p.Loaded("xml.dom.minidom"); !ok {
			t.Error("Loaded does not find what was imported")
		}
		p.exec("import sys", "sys.modules['blocked'] = None")
		if _, ok := p.Loaded("blocked"); ok {
			t.Error("Loaded finds what may not be imported")
		}
		p.exec("del sys.modules['blocked']")
	})
}

func (l *library) testNames(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("class Meta(type):",
			"    def __getattribute__(cls, name):",
			"        if name == '__module__': raise RuntimeError",
			"        return 5",
			"class Odd(metaclass=Meta): pass",
			"class Outer:", "    class Inner(list): pass",
			"Outer.Inner.__module__ = 'pkg.mod'",
			"class Foreign: __module__ = property(lambda self: 'pkg')",
			"class Liar: __class__ = int",
			"class Twisted(list):", "    __len__ = lambda self: 99", "    extra = 1",
			"import collections")
		for expression, want := range map[string]string{
			"[]": "list", "None": "NoneType", "Outer.Inner()": "pkg.mod.Outer.Inner", "Odd()": "Odd", "Foreign()": "Foreign",
			"collections.OrderedDict()": "collections.OrderedDict", "int": "type",
		} {
			if got := p.TypeName(p.eval(expression)); got != want {
				t.Errorf("TypeName(%s) = %q, want %q", expression, got, want)
			}
		}
		if got := p.MRO(p.eval("Outer.Inner()")); !slices.Equal(got, []string{"pkg.mod.Outer.Inner", "list", "object"}) {
			t.Errorf("MRO: %q", got)
		}
		if p.Type(p.eval("1")) != p.eval("int") {
			t.Error("type(1) is not int")
		}
		for expression, want := range map[string]bool{"True": true, "'x'": false, "Liar()": false} {
			if got := p.IsInstance(p.eval(expression), p.eval("int")); got != want {
				t.Errorf("IsInstance(%s): %t", expression, got)
			}
		}
		if p.IsInstance(p.eval("1"), p.eval("1")) {
			t.Error("1 is an instance of 1")
		}
		twisted := p.eval("Twisted([1, 2])")
		if length, ok, err := p.AttrOf(p.eval("list"), twisted, "__len__"); !ok || err != nil {
			t.Errorf("AttrOf: %t, %v", ok, err)
		} else if n, err := p.Call(length, nil, nil); err != nil || n != p.eval("2") {
			t.Errorf("the list's own length: %v", err)
		}
		if _, ok, err := p.AttrOf(p.eval("list"), twisted, "extra"); ok || err != nil {
			t.Errorf("AttrOf of what list does not have: %t, %v", ok, err)
		}
		_, _, err := p.AttrOf(p.eval("list"), p.eval("1"), "__len__")
		p.wantRaised("AttrOf", err, "TypeError")
	})
}
