package numpy

import (
	"errors"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
)

// What a DataFrame, a Series or an Index of pandas has are arrays of NumPy's, from pandas 1.1 on: columns of one type are rows of one
// array, a block. The blocks, and which column is where, are found in attributes of classes in C, and no Python code runs. A way to a
// column holds as long as the frame has the same labels, and the block the same places among them.

// Behind implements [program.Fronter].
func (*adapter) Behind(g *py.GIL, env *program.Env, o py.Object, rest []names.Step) (b program.Behind, ok bool, err error) {
	w := &way{g: g, env: env, o: o, rest: rest}
	switch kindOfTable(g, o) {
	case "DataFrame":
		ok, err = w.frame()
	case "Series":
		ok, err = w.series()
	case "Index":
		ok, err = w.index()
	case "array":
		ok, err = w.values(false)
	}
	return w.behind, ok, err
}

// kindOfTable gives "DataFrame", "Series", "Index" or "array" for an object of pandas, of a class of pandas' own.
func kindOfTable(g *py.GIL, o py.Object) string {
	pandas, ok := g.Loaded("pandas")
	if !ok {
		return ""
	}
	for _, name := range []string{"DataFrame", "Series"} {
		if class, ok := g.Variable(pandas, name); ok && g.Type(o) == class {
			return name
		}
	}
	if !strings.HasPrefix(g.TypeName(o), "pandas.") {
		return ""
	}
	if class, ok := g.Variable(pandas, "Index"); ok && g.IsInstance(o, class) {
		return "Index"
	}
	extensions, ok := g.Loaded("pandas.api.extensions")
	if !ok {
		return ""
	}
	if class, ok := g.Variable(extensions, "ExtensionArray"); ok && g.IsInstance(o, class) {
		return "array"
	}
	return ""
}

// way is a way from an object of pandas to an array: how far it has come, and what of a name is left.
type way struct {
	g      *py.GIL
	env    *program.Env
	o      py.Object
	rest   []names.Step
	behind program.Behind
}

func (w *way) step(s py.Step, key string) bool {
	name, err := w.g.Interned(key)
	if err != nil {
		return false
	}
	s.Key, s.Class = name, w.g.Type(w.o)
	next, ok := w.g.Follow(w.o, s)
	if ok {
		w.o, w.behind.Array = next, next
		w.behind.Steps = append(w.behind.Steps, s)
	}
	return ok
}

func (w *way) attribute(name string) bool { return w.step(py.Step{Kind: py.StepAttribute}, name) }
func (w *way) getter(name string) bool    { return w.step(py.Step{Kind: py.StepGetter}, name) }
func (w *way) item(i int) bool            { return w.step(py.Step{Kind: py.StepIndex, Index: i}, "") }

func (w *way) beside(name string, i int, expected py.Object) bool {
	return w.step(py.Step{Kind: py.StepBeside, Index: i, Expected: expected}, name)
}

// use takes the next step of the name, if it is an attribute of one of these names.
func (w *way) use(attributes ...string) bool {
	if len(w.rest) == 0 || w.rest[0].Kind != names.Attr || !slices.Contains(attributes, w.rest[0].Text) {
		return false
	}
	w.used()
	return true
}

func (w *way) used() {
	w.rest = w.rest[1:]
	w.behind.Used++
}

// frame goes on from a DataFrame.
func (w *way) frame() (bool, error) {
	if len(w.rest) == 0 {
		return false, nil
	}
	frame, s := w.o, w.rest[0]
	if !w.attribute("_mgr") {
		return false, nil
	}
	for axis, name := range []string{"columns", "index"} {
		if w.use(name) {
			if !w.getter("axes") || !w.item(axis) {
				return false, nil
			}
			return w.index()
		}
	}
	if s.Kind == names.Attr && !isColumnName(w.g, frame, s.Text) || s.Kind == names.Slice {
		return false, nil
	}
	t, err := tableOf(w.g, w.o)
	if t == nil || err != nil {
		return false, err
	}
	at := t.find(w.g, s)
	if at < 0 {
		return false, nil
	}
	w.used()
	return t.column(w, at)
}

// isColumnName reports whether frame.name can mean a column: the frame has no attribute of that name.
func isColumnName(g *py.GIL, frame py.Object, name string) bool {
	key, err := g.NewKey(name)
	if err != nil || g.ClassHas(frame, name) {
		return false
	}
	_, own := g.Follow(frame, py.Step{Kind: py.StepAttribute, Class: g.Type(frame), Key: key})
	return !own
}

// series goes on from a Series.
func (w *way) series() (bool, error) {
	if !w.attribute("_mgr") {
		return false, nil
	}
	if w.use("index") {
		if !w.attribute("axes") || !w.item(0) {
			return false, nil
		}
		return w.index()
	}
	if !w.attribute("blocks") || !w.item(0) || !w.getter("values") {
		return false, nil
	}
	return w.values(true)
}

// index goes on from an Index.
func (w *way) index() (bool, error) {
	class := w.g.TypeName(w.o)
	if strings.HasSuffix(class, ".RangeIndex") || strings.HasSuffix(class, ".MultiIndex") || !w.attribute("_data") {
		return false, noArray("pandas keeps no array of its labels: it is "+class, "publish {array}.to_numpy()")
	}
	return w.values(true)
}

// values goes on from an array of pandas' or of NumPy's; known says that pandas has it, so attributes lead from it to itself.
func (w *way) values(known bool) (bool, error) {
	if known && w.use("array", "values") && len(w.rest) > 0 && w.rest[0].Kind == names.Attr {
		name := w.rest[0].Text
		if !w.attribute(name) && !w.getter(name) {
			return false, nil
		}
		w.used()
	}
	if _, ok, err := classOf(w.g, w.env, w.o); ok || err != nil {
		if ok && known && hasObjects(w.g, w.o) {
			return false, noArray("its elements are objects of Python's, such as texts", "publish them as an array of numbers or of bytes")
		}
		return ok, err
	}
	isOf := func(classes ...string) bool {
		return slices.ContainsFunc(w.g.MRO(w.o), func(name string) bool {
			return slices.Contains(classes, name[strings.LastIndexByte(name, '.')+1:])
		})
	}
	class := w.g.TypeName(w.o)
	what := class[strings.LastIndexByte(class, '.')+1:]
	switch {
	case isOf("StringArray"):
		return false, noArray("its elements are texts, which are objects of Python's ("+what+")", "publish them as an array of numbers or of bytes")
	case isOf("DatetimeArray", "TimedeltaArray", "PandasArray", "NumpyExtensionArray"):
		return w.getter("_ndarray") || w.attribute("_data"), nil
	case isOf("BaseMaskedArray"):
		return false, noArray("elements may be missing: pandas has two arrays, the values and a mask ("+what+")", "view {array}.array._data and {array}.array._mask")
	case isOf("ArrowExtensionArray", "ArrowStringArray"):
		return false, noArray("its elements lie in Arrow's memory, in chunks ("+what+")", "publish {array}.to_numpy(), or view {array}.array._pa_array.chunks[0] if that has numbers")
	case isOf("Categorical"):
		return false, noArray("its elements are categories ("+what+")", "view their codes, {array}.array._ndarray")
	case isOf("SparseArray"):
		return false, noArray("most of its elements are not stored ("+what+")", "view those that are, {array}.array._sparse_values")
	case isOf("PeriodArray"):
		return false, noArray("its elements are periods ("+what+")", "view their numbers, {array}.array._ndarray")
	default:
		return false, noArray("its elements are those of an extension of pandas ("+what+")", "publish {array}.to_numpy()")
	}
}

func hasObjects(g *py.GIL, array py.Object) bool {
	dtype, err := g.Attr(array, "dtype")
	if err != nil {
		return false
	}
	has, err := g.Attr(dtype, "hasobject")
	return err == nil && has == g.True()
}

func noArray(why, remedy string) error {
	return &core.Error{Kind: core.ErrUnsupported, Err: errors.New(why), Remedy: remedy}
}

// Columns implements [program.Fronter].
func (*adapter) Columns(g *py.GIL, env *program.Env, o py.Object, yield func(s names.Step, b program.Behind, err error) bool) (bool, error) {
	if kindOfTable(g, o) != "DataFrame" {
		return false, nil
	}
	start := way{g: g, env: env, o: o}
	if !start.attribute("_mgr") {
		return true, nil
	}
	t, err := tableOf(g, start.o)
	if t == nil || err != nil {
		return true, nil //nolint:nilerr // there is nothing to tell of now
	}
	for i, label := range t.labels {
		s := names.Step{Kind: names.Key}
		switch {
		case g.IsStr(label):
			var ok bool
			if s.Text, ok = g.NameText(label); !ok {
				continue
			}
			if names.IsIdentifier(s.Text) && isColumnName(g, o, s.Text) {
				s.Kind = names.Attr
			}
		case g.IsInt(label) && !g.IsBool(label):
			s.Kind = names.Item
			if s.Item, err = g.Int64(label); err != nil {
				continue
			}
		default:
			continue
		}
		w := start
		w.behind.Steps = slices.Clone(start.behind.Steps)
		ok, err := t.column(&w, i)
		w.behind.Used = 1
		if (ok || err != nil) && !yield(s, w.behind, err) {
			break
		}
	}
	return true, nil
}
