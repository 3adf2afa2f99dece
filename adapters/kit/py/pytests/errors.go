package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// odd defines exceptions that are hard to describe.
var odd = []string{
	"class Unprintable(Exception):", "    def __str__(self): raise KeyError('no')",
	"class Unspeakable(Exception):", "    def __str__(self): return 5",
	"class Outer:", "    class Error(Exception): pass",
	"Outer.Error.__module__ = 'pkg'",
	"class Base(BaseException): pass", "Base.__module__ = 'builtins'",
	"def throw(e): raise e",
	"def chain():", "    try: throw(KeyError('first'))", "    except KeyError as e: raise ValueError('second') from e",
	"def handling():", "    try: throw(KeyError('first'))", "    except KeyError as e: throw(ValueError('second'))",
	"def noted():", "    e = ValueError('no')", "    e.__notes__ = ['one', 'two']", "    raise e",
	"def deep(n): return deep(n + 1)",
}

func (l *library) testExceptions(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(odd...)
		p.exec("import traceback")
		tests := map[string]struct{ class, message, traceback string }{
			"throw(ValueError('no'))":                {"ValueError", "no", "in throw\n"},
			"throw(ValueError())":                    {"ValueError", "", "ValueError\n"},
			"throw(ValueError('\\udc80'))":           {"ValueError", `\udc80`, `ValueError: \udc80`},
			"throw(Outer.Error('x'))":                {"pkg.Outer.Error", "x", "pkg.Outer.Error: x\n"},
			"throw(Base('x'))":                       {"Base", "x", "in throw\n"},
			"throw(Unprintable('x'))":                {"Unprintable", "<exception str() failed>", "in throw\n"},
			"throw(Unspeakable('x'))":                {"Unspeakable", "<exception str() failed>", "in throw\n"},
			"throw(SystemExit(3))":                   {"SystemExit", "3", "SystemExit: 3\n"},
			"throw(KeyboardInterrupt())":             {"KeyboardInterrupt", "", "KeyboardInterrupt\n"},
			"throw(5)":                               {"TypeError", "exceptions must derive from BaseException", "in throw\n"},
			"chain()":                                {"ValueError", "second", "The above exception was the direct cause"},
			"deep(0)":                                {"RecursionError", "maximum recursion depth exceeded", "in deep\n"},
			"compile('(', 'file.py', 'exec')":        {"SyntaxError", "", `File "file.py", line 1`},
			"__import__('no_such_module')":           {"ModuleNotFoundError", "No module named 'no_such_module'", "<module>"},
			"throw(StopIteration(1)), throw(None)":   {"StopIteration", "1", "in throw\n"},
			"throw(MemoryError())":                   {"MemoryError", "", "MemoryError\n"},
			"throw(OSError(2, 'gone', 'f'))":         {"FileNotFoundError", "[Errno 2] gone: 'f'", "in throw\n"},
			"(lambda: throw(ValueError('x' * 9)))()": {"ValueError", "xxxxxxxxx", "in <lambda>\n"},
		}
		for expression, want := range tests {
			_, err := p.try(expression)
			e, ok := errors.AsType[*core.PythonError](err)
			if !ok || !errors.Is(err, core.ErrPython) {
				t.Errorf("%s: %v", expression, err)
				continue
			}
			class := strings.TrimPrefix(e.Type, "builtins.") // where exec put the classes that have no module
			want.class = strings.TrimPrefix(want.class, "")
			if class != want.class || !strings.HasPrefix(e.Message, want.message) || !strings.Contains(e.Traceback, want.traceback) {
				t.Errorf("%s: %q %q\n%s\nwant %q", expression, e.Type, e.Message, e.Traceback, want)
			}
			if !strings.HasSuffix(e.Traceback, "\n") {
				t.Errorf("%s: traceback %q", expression, e.Traceback)
			}
		}
	})
}

// In a program that has broken its own traceback module, the rest is still told.
func (l *library) testExceptionsWithoutTraceback(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec("import sys, traceback", "saved = traceback.format_exception")
		for _, broken := range []string{
			"traceback.format_exception = 5",
			"del traceback.format_exception",
			"traceback.format_exception = lambda *a: 1/0",
			"traceback.format_exception = lambda *a: [1, None]",
		} {
			p.exec(broken)
			_, err := p.try("1/0")
			if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Type != "ZeroDivisionError" || !strings.HasSuffix(e.Traceback, "ZeroDivisionError: division by zero\n") {
				t.Errorf("%s: %#v", broken, err)
			}
			p.exec("traceback.format_exception = saved", "sys.modules['traceback'] = traceback")
		}
	})
}

// testRaise hands errors to Python and takes them back.
func (l *library) testRaise(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(odd...)
		p.exec("import ctypes", "within = ctypes.PyDLL(__import__('os').environ['PYTESTS']).ndWithin",
			"within.argtypes = [ctypes.py_object]")
		for expression, want := range map[string]string{
			"within(lambda: None)":                                      "",
			"within(lambda: throw(ValueError('no')))":                   "ValueError: no",
			"within(lambda: throw(KeyboardInterrupt('stop')))":          "KeyboardInterrupt: stop",
			"within(lambda: throw(Outer.Error('x')))":                   "RuntimeError: pkg.Outer.Error: x",
			"within(lambda: within(lambda: throw(IndexError('deep'))))": "IndexError: deep",
			"within(5)":          "TypeError: 'int' object is not callable",
			"within('config')":   "ValueError: test: bad configuration",
			"within('layout')":   "ValueError: test: layout not supported",
			"within('dtype')":    "TypeError: test: wrong dtype",
			"within('closed')":   "RuntimeError: test: closed",
			"within('no class')": "RuntimeError: len: no exception",
		} {
			_, err := p.try(expression)
			if want == "" && err == nil {
				continue
			}
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", expression, err, want)
			}
		}
	})
}
