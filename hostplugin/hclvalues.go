package hostplugin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/ndbridge/ndbridge/internal/prose"
)

// value evaluates an attribute. It reports false if there is nothing to store: after a mistake, and
// for null, which means the default.
func (r *hclReader) value(at place, expr hclsyntax.Expression) (cty.Value, bool) {
	v, diags := expr.Value(r.eval)
	r.Diags = append(r.Diags, diags...)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	if v.IsNull() {
		delete(r.Ranges, at)
		return cty.NilVal, false
	}
	return v, true
}

// scalar evaluates an attribute that must have the given type. No conversion: `script = 5` is
// more likely a mistake than a file called 5.
func (r *hclReader) scalar(at place, expr hclsyntax.Expression, want cty.Type) (cty.Value, bool) {
	v, ok := r.value(at, expr)
	if !ok {
		return v, false
	}
	if !v.Type().Equals(want) {
		r.Errorf(expr.Range(), "Wrong type", "%s must be %s, not %s.", at.name(), typeName(want), typeName(v.Type()))
		return v, false
	}
	return v, true
}

// Text reads a string that is not empty.
func (r *hclReader) Text(dst *string) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.scalar(at, expr, cty.String)
		if !ok {
			return
		}
		if *dst = v.AsString(); *dst == "" {
			r.Errorf(expr.Range(), "Empty value", "%s must not be empty; leave it out for the default.", at.name())
		}
	}
}

// Bool reads true or false.
func (r *hclReader) Bool(dst *bool) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		if v, ok := r.scalar(at, expr, cty.Bool); ok {
			*dst = v.True()
		}
	}
}

// Off reads true or false, of what is on unless it is switched off.
func (r *hclReader) Off(dst *bool) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		if v, ok := r.scalar(at, expr, cty.Bool); ok {
			*dst = v.False()
		}
	}
}

// Path reads a file name and makes it absolute, relative to the file that is read.
func (r *hclReader) Path(dst *string) hclValue {
	read := r.Text(dst)
	return func(at place, expr hclsyntax.Expression) {
		if read(at, expr); *dst != "" {
			*dst = r.abs(expr, *dst)
		}
	}
}

// PathOrName is Path for attributes in which a value without a slash is a name to look up.
func (r *hclReader) PathOrName(dst *string) hclValue {
	read := r.Text(dst)
	return func(at place, expr hclsyntax.Expression) {
		if read(at, expr); strings.Contains(*dst, "/") {
			*dst = r.abs(expr, *dst)
		}
	}
}

func (r *hclReader) abs(expr hclsyntax.Expression, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		r.Errorf(expr.Range(), "Unexpanded home directory",
			"Nothing expands %q here; write pathexpand(%q).", "~/", "~/"+rest)
		return path
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.dir, path)
}

// Texts reads a list of strings. Numbers and bools are welcome in it: `args = ["--fps", 30]`.
func (r *hclReader) Texts(dst *[]string) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.value(at, expr)
		if !ok {
			return
		}
		if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
			r.Errorf(expr.Range(), "Wrong type", "%s must be a list of strings, not %s.", at.name(), typeName(t))
			return
		}
		list, written := expr.(*hclsyntax.TupleConsExpr)
		*dst = make([]string, 0, v.LengthInt())
		for _, e := range v.Elements() {
			i := len(*dst)
			rng := expr.Range()
			if written {
				rng = list.Exprs[i].Range()
			}
			r.Ranges[at.Nth(i)] = rng
			*dst = append(*dst, r.element(rng, fmt.Sprintf("%s[%d]", at.name(), i), e))
		}
	}
}

// TextMap reads a map of strings, with numbers and bools as in Texts.
func (r *hclReader) TextMap(dst *map[string]string) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.value(at, expr)
		if !ok {
			return
		}
		if t := v.Type(); !t.IsObjectType() && !t.IsMapType() {
			r.Errorf(expr.Range(), "Wrong type", "%s must be a map of strings, as in { NAME = \"value\" }, not %s.",
				at.name(), typeName(t))
			return
		}
		places := r.itemRanges(expr)
		*dst = make(map[string]string, v.LengthInt())
		for k, e := range v.Elements() {
			key := k.AsString()
			rng, ok := places[key]
			if !ok {
				rng = expr.Range()
			}
			r.Ranges[at.Key(key)] = rng
			(*dst)[key] = r.element(rng, at.name()+"."+key, e)
		}
	}
}

// itemRanges finds where each key of an object written out in the file stands.
func (r *hclReader) itemRanges(expr hclsyntax.Expression) map[string]hcl.Range {
	places := make(map[string]hcl.Range)
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return places
	}
	for _, item := range object.Items {
		if k, diags := item.KeyExpr.Value(r.eval); !diags.HasErrors() && k.Type() == cty.String && k.IsKnown() && !k.IsNull() {
			places[k.AsString()] = hcl.RangeBetween(item.KeyExpr.Range(), item.ValueExpr.Range())
		}
	}
	return places
}

func (r *hclReader) element(rng hcl.Range, what string, v cty.Value) string {
	if s, err := convert.Convert(v, cty.String); err == nil && !s.IsNull() && s.IsKnown() {
		return s.AsString()
	}
	got := "null"
	if !v.IsNull() {
		got = typeName(v.Type())
	}
	r.Errorf(rng, "Wrong type", "%s must be a string, a number or a bool, not %s.", what, got)
	return ""
}

// Duration reads a positive time such as "30s".
func (r *hclReader) Duration(dst *time.Duration) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.value(at, expr)
		if !ok {
			return
		}
		if v.Type() == cty.String {
			if t, err := time.ParseDuration(v.AsString()); err == nil && t > 0 {
				*dst = t
				return
			}
		}
		r.Errorf(expr.Range(), "Invalid duration",
			"%s must be a positive time with its unit, such as \"500ms\", \"30s\" or \"2m\".", at.name())
	}
}

// Spin reads a time with its unit, which may be 0: it becomes -1, since 0 means the default.
func (r *hclReader) Spin(dst *time.Duration) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.value(at, expr)
		if !ok {
			return
		}
		if v.Type() == cty.String {
			if t, err := time.ParseDuration(v.AsString()); err == nil && t >= 0 {
				*dst = cmp.Or(t, -1)
				return
			}
		}
		r.Errorf(expr.Range(), "Invalid duration",
			"%s must be a time with its unit, such as \"50us\" or \"0s\".", at.name())
	}
}

// Count reads a whole number. What is too large to count becomes the largest number, and zero, which
// would silently mean the default, becomes -1.
func (r *hclReader) Count(dst *int) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.scalar(at, expr, cty.Number)
		if !ok {
			return
		}
		n, acc := v.AsBigFloat().Int64()
		if acc != big.Exact {
			r.Errorf(expr.Range(), "Invalid number", "%s must be a whole number.", at.name())
			return
		}
		if *dst = int(n); n == 0 {
			*dst = -1
		}
	}
}

// Size reads a number of bytes: a whole number, or a string with a unit, such as "64KiB". What is
// too large to count becomes the largest number, and zero, which would silently mean the default,
// becomes -1.
func (r *hclReader) Size(dst *int64) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.value(at, expr)
		if !ok {
			return
		}
		var n int64
		switch v.Type() {
		case cty.Number:
			var acc big.Accuracy
			n, acc = v.AsBigFloat().Int64()
			ok = acc == big.Exact
		case cty.String:
			n, ok = parseSize(v.AsString())
		default:
			ok = false
		}
		if !ok {
			r.Errorf(expr.Range(), "Invalid size",
				"%s must be a whole number of bytes, or a string with a unit, such as \"64KiB\" or \"1MiB\".", at.name())
			return
		}
		if *dst = n; n == 0 {
			*dst = -1
		}
	}
}

// parseSize reads "64KiB", "1 MiB", "4096" or "4096B".
func parseSize(s string) (int64, bool) {
	units := []struct {
		suffix string
		shift  uint
	}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(digits, " "), 10, 64)
		if err != nil || n < 0 {
			return 0, false
		}
		if n > math.MaxInt64>>u.shift {
			return math.MaxInt64, true
		}
		return n << u.shift, true
	}
	return 0, false
}

// formatSize writes a number of bytes in the largest unit that says it exactly: "64KiB".
func formatSize(n int64) string {
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<u.shift && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// hclEnum reads a string that is one of the keys of values.
func hclEnum[T any](r *hclReader, dst *T, values map[string]T) hclValue {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := r.scalar(at, expr, cty.String)
		if !ok {
			return
		}
		got := v.AsString()
		if *dst, ok = values[got]; ok {
			return
		}
		names := slices.Sorted(maps.Keys(values))
		quoted := make([]string, len(names))
		for i, n := range names {
			quoted[i] = strconv.Quote(n)
		}
		detail := fmt.Sprintf("%s must be %s, not %q.", at.name(), strings.Join(quoted, " or "), got)
		if near := prose.Nearest(got, slices.Values(names)); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		r.Errorf(expr.Range(), "Invalid value", "%s", detail)
	}
}

func typeName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsTupleType(), t.IsListType(), t.IsSetType():
		return "a list"
	case t.IsObjectType(), t.IsMapType():
		return "a map"
	default:
		return t.FriendlyName()
	}
}
