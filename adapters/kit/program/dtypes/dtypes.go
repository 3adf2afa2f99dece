// Package dtypes looks at the dtype objects of NumPy, by which more frameworks than NumPy describe
// their elements.
package dtypes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// NumPy holds the facts about one dtype.
type NumPy struct {
	Typestr   string // dtype.str: "<f8"
	Kind      byte   // of Typestr: 'f', 'i', 'M', 'V' ...
	Size      int    // bytes
	Native    bool   // has the machine's byte order, or none
	Pointers  bool   // elements are, or hold, pointers to Python objects
	Extension bool   // another package defines it
	Name      string // str(dtype), if DLPack cannot say it: ">f8", "datetime64[ns]", "bfloat16"
}

// userTypes is the number from which on dtypes come from other packages (NPY_USERDEF).
const userTypes = 256

// Look finds the facts about the dtype of an array.
func Look(g *py.GIL, dtype py.Object) (NumPy, error) {
	var d NumPy
	text, err := g.Attr(dtype, "str")
	if err != nil {
		return d, err
	}
	if d.Typestr, err = g.Text(text); err != nil {
		return d, err
	}
	if err := d.parse(); err != nil {
		return d, err
	}
	for _, fact := range []struct {
		to   *bool
		name string
	}{{&d.Native, "isnative"}, {&d.Pointers, "hasobject"}} {
		v, err := g.Attr(dtype, fact.name)
		if err != nil {
			return d, err
		}
		if *fact.to, err = g.Bool(v); err != nil {
			return d, err
		}
	}
	number, err := g.Attr(dtype, "num")
	if err != nil {
		return d, err
	}
	n, err := g.Int64(number)
	if err != nil {
		return d, err
	}
	d.Extension = n >= userTypes || n < 0
	if d.Numeric() && d.Native && !d.Extension {
		return d, nil
	}
	d.Name, err = g.Str(dtype)
	return d, err
}

// Marks gives the marks of an array that has the attributes of NumPy's, and one (x, or x.y) that is the
// address of its first element. ok is false if its elements are no numbers: of those, the marks do not tell
// one type from the other.
func Marks(g *py.GIL, o py.Object, address string) (marks py.Marks, ok bool, err error) {
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return marks, false, err
	}
	d, err := Look(g, dtype)
	return py.Marks{
		Class: g.Type(o), Numbers: []string{address, "shape", "strides", "dtype.num", "dtype.isnative"},
	}, err == nil && d.Numeric() && !d.Extension, err
}

// parse reads Typestr as far as it is the same for all types: "<f8", "|V12", "<M8[ns]".
func (d *NumPy) parse() error {
	if len(d.Typestr) < 2 {
		return &core.Error{Kind: core.ErrDType, Err: fmt.Errorf("dtype.str is %q", d.Typestr)}
	}
	d.Kind = d.Typestr[1]
	digits, _, _ := strings.Cut(d.Typestr[2:], "[")
	d.Size, _ = strconv.Atoi(digits) // "|O" has none
	if d.Kind == 'U' {
		d.Size *= 4
	}
	return nil
}

// Numeric reports whether the elements are numbers, or bools.
func (d *NumPy) Numeric() bool {
	switch d.Kind {
	case 'b', 'i', 'u', 'f', 'c':
		return true
	default:
		return false
	}
}

// Records reports whether the elements have fields, or are nothing but bytes to NumPy.
func (d *NumPy) Records() bool { return d.Kind == 'V' && !d.Extension }

// ExtendTo makes the plan say the type of another package by its name, whatever a typestr says: several
// of them have the same. Types of less than a byte take a byte each in NumPy, which core cannot say, as it
// cannot say names that DLPack does not have: then the elements are opaque, and the name is their tag.
func (d *NumPy) ExtendTo(p *program.Plan) {
	p.Tag = d.Name
	if t, err := core.ParseDType(d.Name); err == nil && t.Size() == d.Size {
		p.DType = t
	} else if t, err := core.Opaque(d.Size); err == nil {
		p.DType = t
	} // else the protocol's own type, and its own error
}
