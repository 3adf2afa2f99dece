package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// shape writes an exception and what is behind it: "E(message; notes) < its cause", "~" before its context, and the parts of a group in brackets.
func shape(e *core.PythonError) string {
	text := e.Type[strings.LastIndex(e.Type, ".")+1:] + "(" + strings.Join(append([]string{e.Message}, e.Notes...), "; ") + ")"
	if e.Cause != nil {
		text += " < " + shape(e.Cause)
	}
	if e.Context != nil {
		text += " ~ " + shape(e.Context)
	}
	if len(e.Group) > 0 {
		var parts []string
		for _, part := range e.Group {
			parts = append(parts, shape(part))
		}
		text += " [" + strings.Join(parts, ", ") + "]"
	}
	return text
}

// behind defines functions that raise exceptions with others behind them.
var behind = []string{
	"def suppressed():", "    try: throw(KeyError(1))", "    except KeyError: raise ValueError(2) from None",
	"def both():", "    try: throw(KeyError(1))", "    except KeyError: raise ValueError(2) from IndexError(3)",
	"def three():", "    try: chain()", "    except ValueError: throw(OSError('third'))",
	"def circle(mark):", "    a, b = KeyError('a'), KeyError('b')", "    a.__dict__[mark] = 1", "    setattr(a, mark, b); setattr(b, mark, a)", "    raise a",
	"def own():", "    e = ValueError('own')", "    e.__cause__ = e.__context__ = e", "    raise e",
	"def long(n):", "    e = ValueError(0)", "    for i in range(1, n):", "        next = ValueError(i)", "        next.__cause__ = e", "        e = next", "    raise e",
	"def notes(n, attribute='__notes__'):", "    e = ValueError('n')", "    setattr(e, attribute, n)", "    raise e",
	"class Raising(Exception):", "    __notes__ = property(lambda self: 1 / 0)", "    __cause__ = property(lambda self: 1 / 0)",
	"    __context__ = __suppress_context__ = __cause__", "    def __getattribute__(self, name): raise KeyError(name)",
	"class List(list):", "    def __getitem__(self, i): raise KeyError(i)", "    def __len__(self): raise KeyError()", "    __iter__ = __getitem__",
	"class Str(str):", "    def __str__(self): raise KeyError()", "    encode = __str__",
	"class Hides(Exception):", "    def __str__(self): self.__cause__ = None; return 'hides'",
	"def hides():", "    e = Hides()", "    e.__cause__ = KeyError('c')", "    raise e",
	"def group():", "    try: throw(KeyError('of one'))", "    except KeyError as e: one = e",
	"    inner = ExceptionGroup('inner', [one, IndexError('two')])", "    raise ExceptionGroup('outer', [inner, one, OSError('three')]) from one",
	"def wide(n): raise ExceptionGroup('wide', [ValueError(i) for i in range(n)])",
	"def narrow(n):", "    e = ValueError(0)", "    for i in range(n): e = ExceptionGroup(str(i), [e])", "    raise e",
}

// shapes are what is behind the exceptions that expressions raise; one that does not end with ")" or "]" is the beginning.
var shapes = map[string]string{
	"throw(ValueError('no'))": "ValueError(no)",
	"chain()":                 "ValueError(second) < KeyError('first')",
	"handling()":              "ValueError(second) ~ KeyError('first')",
	"suppressed()":            "ValueError(2)",
	"both()":                  "ValueError(2) < IndexError(3)",
	"three()":                 "OSError(third) ~ ValueError(second) < KeyError('first')",
	"noted()":                 "ValueError(no; one; two)",
	"circle('__cause__')":     "KeyError('a') < KeyError('b')",
	"circle('__context__')":   "KeyError('a') ~ KeyError('b')",
	"own()":                   "ValueError(own)",
	"notes(['one', 2, b'3', None, 'four\\nfive', '\\udc80'])": `ValueError(n; one; four` + "\n" + `five; \udc80)`,
	"notes(('one', 'two'))":                                   "ValueError(n; one; two)",
	"notes('text')":                                           "ValueError(n)",
	"notes(7)":                                                "ValueError(n)",
	"notes({'a': 'b'})":                                       "ValueError(n)",
	"notes(iter('ab'))":                                       "ValueError(n)",
	"notes(List(['one']))":                                    "ValueError(n; one)",
	"notes([Str('one')])":                                     "ValueError(n; one)",
	"notes(['n'] * 10**6)":                                    "ValueError(n" + strings.Repeat("; n", 64) + ")",
	"notes([1] * 10**6)":                                      "ValueError(n)",
	"notes(['n' * (1 << 24)])":                                "ValueError(n; " + strings.Repeat("n", 1<<24) + ")",
	"throw(Raising('r'))":                                     "Raising(r)",
	"hides()":                                                 "Hides(hides)",
	"notes(['odd'], '__notes')":                               "ValueError(n)",
	"throw(type('Error', (KeyError,), {'__cause__': 5})('x'))": "Error('x')",
	"long(100)":   "ValueError(99) < ValueError(98) < ",
	"long(10000)": "ValueError(9999) < ValueError(9998) < ",
}

// groupShapes are the same of groups.
var groupShapes = map[string]string{
	"group()": "ExceptionGroup(outer (3 sub-exceptions)) < KeyError('of one') " +
		"[ExceptionGroup(inner (2 sub-exceptions)) [IndexError(two)], OSError(three)]",
	"wide(1000)":  "ExceptionGroup(wide (1000 sub-exceptions)) [ValueError(0), ValueError(1), ",
	"narrow(500)": "ExceptionGroup(499 (1 sub-exception)) [ExceptionGroup(498 (1 sub-exception)) [ExceptionGroup(497 ",
}

// testExceptionsBehind: an exception comes with its notes and with those behind it, however they are made.
func (l *library) testExceptionsBehind(t *testing.T) {
	l.do(t, func(p *python) {
		p.exec(odd...)
		p.exec(behind...)
		p.exec("import sys, traceback")
		for _, module := range []string{"sys.modules['traceback'] = traceback", "del sys.modules['traceback']"} {
			p.exec(module)
			for expression, want := range shapes {
				p.wantShape(expression, want)
			}
			if _, err := p.try("ExceptionGroup"); err != nil { // before Python 3.11
				continue
			}
			for expression, want := range groupShapes {
				p.wantShape(expression, want)
			}
		}
		p.exec("sys.modules['traceback'] = traceback")
	})
}

// wantShape evaluates an expression that raises.
func (p *python) wantShape(expression, want string) {
	_, err := p.try(expression)
	e, ok := errors.AsType[*core.PythonError](err)
	if !ok {
		p.Errorf("%s: %v", expression, err)
		return
	}
	whole := strings.HasSuffix(want, ")") || strings.HasSuffix(want, "]")
	if got := shape(e); got != want && (whole || !strings.HasPrefix(got, want)) {
		p.Errorf("%s: %.300s\nwant %.300s", expression, got, want)
	}
	n := 0
	for each := range e.All() {
		if n++; n > 1 && (!strings.HasSuffix(each.Traceback, each.Error()+"\n") || strings.Contains(each.Traceback, "direct cause")) {
			p.Errorf("%s: behind it %s", expression, each.Traceback)
		}
	}
	if n > 64 || strings.HasPrefix(expression, "long") && n != 64 || strings.HasPrefix(expression, "wide") && n != 64 {
		p.Errorf("%s: %d exceptions", expression, n)
	}
	if e.Traceback == "" {
		p.Errorf("%s has no traceback", expression)
	}
}
