// Command pytests is a library with which the tests of package pyvalues call it inside a Python interpreter.
package main

import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/pyvalues"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/values"
)

// library is what the C functions share: C calls functions, not methods. All but ndOpen are called with the GIL, and give a new reference, or raise.
type library struct {
	interp *py.Interp
	arrays []py.Object // what the last value that was appended had for arrays: instances of classes that are called Array
}

var lib library //nolint:gochecknoglobals // see library

//export ndOpen
func ndOpen() {
	var err error
	if lib.interp, err = py.Open(); err != nil {
		panic(err)
	}
}

func within(f func(g *py.GIL) (py.Object, error)) (o uintptr) {
	_ = lib.interp.Within(func(g *py.GIL) error {
		made, err := f(g)
		if errors.Is(err, core.ErrUnsupported) { // with the place, also where Python code raised
			err = &core.PythonError{Type: "TypeError", Message: err.Error()}
		}
		if err != nil {
			g.Raise(err)
			return err
		}
		o = uintptr(g.Keep(made))
		return nil
	})
	return o
}

// append gives the form of an object.
func (l *library) append(g *py.GIL, o py.Object) ([]byte, error) {
	for _, a := range l.arrays {
		g.Drop(a)
	}
	l.arrays = l.arrays[:0]
	var w values.Writer
	arrays := pyvalues.Arrays{Known: func(py.Object) bool { return false }}
	arrays.Is = func(g *py.GIL, o py.Object) bool {
		name := g.MRO(o)[0]
		return name == "__main__.Raising" || name == "__main__.Array"
	}
	arrays.Number = func(g *py.GIL, o py.Object) (int, error) {
		if g.MRO(o)[0] == "__main__.Raising" {
			_, err := g.Attr(o, "array")
			return 0, err
		}
		l.arrays = append(l.arrays, g.Keep(o))
		_, err := g.Call(g.Type(o), nil, nil) // which runs code of the program's
		return len(l.arrays) - 1, err
	}
	err := pyvalues.Append(g, &w, o, &arrays)
	return w.Form(), err
}

func (l *library) build(g *py.GIL, form []byte) (py.Object, error) {
	r := values.NewReader(form)
	o, err := pyvalues.Build(g, r, func(_ *py.GIL, i int) (py.Object, error) {
		if i >= len(l.arrays) {
			return 0, values.Cannot("there is no array %d", i)
		}
		return l.arrays[i], nil
	})
	if err == nil {
		err = r.End()
	}
	return o, err
}

// ndAppend gives the form of an object.
//
//export ndAppend
func ndAppend(o uintptr) uintptr {
	return within(func(g *py.GIL) (py.Object, error) {
		form, err := lib.append(g, py.Object(o))
		if err != nil {
			return 0, err
		}
		var w values.Writer
		w.Bytes(form)
		return pyvalues.Build(g, values.NewReader(w.Form()), nil)
	})
}

// ndBuild gives the object of a form, which is bytes.
//
//export ndBuild
func ndBuild(o uintptr) uintptr {
	return within(func(g *py.GIL) (py.Object, error) {
		var w values.Writer
		if err := pyvalues.Append(g, &w, py.Object(o), nil); err != nil {
			return 0, err
		}
		var form []byte
		if err := values.Decode(w.Form(), &form, nil); err != nil {
			return 0, err
		}
		return lib.build(g, form)
	})
}

// ndThrough gives an object that has become a form and an object again.
//
//export ndThrough
func ndThrough(o uintptr) uintptr {
	return within(func(g *py.GIL) (py.Object, error) {
		form, err := lib.append(g, py.Object(o))
		if err != nil {
			return 0, err
		}
		return lib.build(g, form)
	})
}

// ndRandom gives a pair: a random value that Go has made, and what it is as an expression of Python's. On the way back it
// must be what it was.
//
//export ndRandom
func ndRandom(seed int) uintptr {
	return within(func(g *py.GIL) (py.Object, error) {
		v, expression := random(uint64(seed))
		form, err := values.Append(nil, v, nil)
		if err != nil {
			return 0, err
		}
		o, err := lib.build(g, form)
		if err != nil {
			return 0, err
		}
		var w values.Writer
		if err := pyvalues.Append(g, &w, o, nil); err != nil {
			return 0, err
		}
		back, err := values.Value(w.Form(), nil)
		if err != nil {
			return 0, err
		}
		if !reflect.DeepEqual(sorted(back), sorted(v)) {
			return 0, fmt.Errorf("%#v has become %#v", v, back)
		}
		text, err := g.NewStr(expression)
		if err != nil {
			return 0, err
		}
		return g.NewTuple(o, text)
	})
}

// ndTime gives the times in nanoseconds that it takes to append an object, and to build it.
//
//export ndTime
func ndTime(o uintptr, n int) uintptr {
	return within(func(g *py.GIL) (py.Object, error) {
		var w values.Writer
		begun := time.Now()
		for range n {
			w = *values.NewWriter(w.Form()[:0])
			if err := pyvalues.Append(g, &w, py.Object(o), nil); err != nil {
				return 0, err
			}
		}
		appended := time.Since(begun)
		begun = time.Now()
		for range n {
			err := g.Nested(func() error {
				_, err := pyvalues.Build(g, values.NewReader(w.Form()), nil)
				return err
			})
			if err != nil {
				return 0, err
			}
		}
		built := time.Since(begun)
		return lib.build(g, must(values.Append(nil, []any{int(appended) / n, int(built) / n, len(w.Form())}, nil)))
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func main() {}
