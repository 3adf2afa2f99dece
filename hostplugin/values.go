package hostplugin

import (
	"fmt"
	"math/big"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/ndbridge/ndbridge/core"
)

// value evaluates an attribute. It reports false if there is nothing to store: after a mistake, and
// for null, which means the default.
func (d *decoder) value(at place, expr hclsyntax.Expression) (cty.Value, bool) {
	v, diags := expr.Value(d.eval)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	if v.IsNull() {
		delete(d.ranges, at)
		return cty.NilVal, false
	}
	return v, true
}

// scalar evaluates an attribute that must have the given type. No conversion: `script = 5` is
// more likely a mistake than a file called 5.
func (d *decoder) scalar(at place, expr hclsyntax.Expression, want cty.Type) (cty.Value, bool) {
	v, ok := d.value(at, expr)
	if !ok {
		return v, false
	}
	if !v.Type().Equals(want) {
		d.errorf(expr.Range(), "Wrong type", "%s must be %s, not %s.", at.attr, typeName(want), typeName(v.Type()))
		return v, false
	}
	return v, true
}

func (d *decoder) text(dst *string) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.scalar(at, expr, cty.String)
		if !ok {
			return
		}
		if *dst = v.AsString(); *dst == "" {
			d.errorf(expr.Range(), "Empty value", "%s must not be empty; leave it out for the default.", at.attr)
		}
	}
}

func (d *decoder) bool(dst *bool) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		if v, ok := d.scalar(at, expr, cty.Bool); ok {
			*dst = v.True()
		}
	}
}

func (d *decoder) optionalBool(dst **bool) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		if v, ok := d.scalar(at, expr, cty.Bool); ok {
			*dst = new(v.True())
		}
	}
}

// path reads a file name and makes it absolute, relative to the configuration file.
func (d *decoder) path(dst *string) func(place, hclsyntax.Expression) {
	read := d.text(dst)
	return func(at place, expr hclsyntax.Expression) {
		if read(at, expr); *dst != "" {
			*dst = d.abs(expr, *dst)
		}
	}
}

// pathOrName is path for attributes in which a value without a slash is a name to look up.
func (d *decoder) pathOrName(dst *string) func(place, hclsyntax.Expression) {
	read := d.text(dst)
	return func(at place, expr hclsyntax.Expression) {
		if read(at, expr); strings.Contains(*dst, "/") {
			*dst = d.abs(expr, *dst)
		}
	}
}

func (d *decoder) abs(expr hclsyntax.Expression, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		d.errorf(expr.Range(), "Unexpanded home directory",
			"Nothing expands %q here; write pathexpand(%q).", "~/", "~/"+rest)
		return path
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(d.dir, path)
}

// texts reads a list of strings. Numbers and bools are welcome in it: `args = ["--fps", 30]`.
func (d *decoder) texts(dst *[]string) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.value(at, expr)
		if !ok {
			return
		}
		if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
			d.errorf(expr.Range(), "Wrong type", "%s must be a list of strings, not %s.", at.attr, typeName(t))
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
			at.item = strconv.Itoa(i)
			d.ranges[at] = rng
			*dst = append(*dst, d.element(rng, fmt.Sprintf("%s[%d]", at.attr, i), e))
		}
	}
}

func (d *decoder) textMap(dst *map[string]string) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.value(at, expr)
		if !ok {
			return
		}
		if t := v.Type(); !t.IsObjectType() && !t.IsMapType() {
			d.errorf(expr.Range(), "Wrong type", "%s must be a map of strings, as in { NAME = \"value\" }, not %s.",
				at.attr, typeName(t))
			return
		}
		places := d.itemRanges(expr)
		*dst = make(map[string]string, v.LengthInt())
		for k, e := range v.Elements() {
			key := k.AsString()
			rng, ok := places[key]
			if !ok {
				rng = expr.Range()
			}
			at.item = key
			d.ranges[at] = rng
			(*dst)[key] = d.element(rng, at.attr+"."+key, e)
		}
	}
}

// itemRanges finds where each key of an object written out in the file stands.
func (d *decoder) itemRanges(expr hclsyntax.Expression) map[string]hcl.Range {
	places := make(map[string]hcl.Range)
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return places
	}
	for _, item := range object.Items {
		if k, diags := item.KeyExpr.Value(d.eval); !diags.HasErrors() && k.Type() == cty.String && k.IsKnown() && !k.IsNull() {
			places[k.AsString()] = hcl.RangeBetween(item.KeyExpr.Range(), item.ValueExpr.Range())
		}
	}
	return places
}

func (d *decoder) element(rng hcl.Range, what string, v cty.Value) string {
	if s, err := convert.Convert(v, cty.String); err == nil && !s.IsNull() && s.IsKnown() {
		return s.AsString()
	}
	got := "null"
	if !v.IsNull() {
		got = typeName(v.Type())
	}
	d.errorf(rng, "Wrong type", "%s must be a string, a number or a bool, not %s.", what, got)
	return ""
}

func (d *decoder) duration(dst *time.Duration) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.value(at, expr)
		if !ok {
			return
		}
		if v.Type() == cty.String {
			if t, err := time.ParseDuration(v.AsString()); err == nil && t > 0 {
				*dst = t
				return
			}
		}
		d.errorf(expr.Range(), "Invalid duration",
			"%s must be a positive time with its unit, such as \"500ms\", \"30s\" or \"2m\".", at.attr)
	}
}

// size reads a number of bytes: a whole number, or a string with a unit.
func (d *decoder) size(dst *int64) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.value(at, expr)
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
			d.errorf(expr.Range(), "Invalid size",
				"%s must be a whole number of bytes, or a string with a unit, such as \"64KiB\" or \"1MiB\".", at.attr)
			return
		}
		if *dst = n; n == 0 {
			*dst = -1 // zero would silently mean the default
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
		return min(n, maxHeapThreshold+1) << u.shift, true
	}
	return 0, false
}

// formatSize is parseSize's inverse, in the largest unit that says it exactly.
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

// copyPolicies names the policies as a file spells them.
func copyPolicies() map[string]core.CopyPolicy {
	return map[string]core.CopyPolicy{"never": core.CopyNever, "if-needed": core.CopyIfNeeded}
}

func (d *decoder) copyPolicy(dst *core.CopyPolicy) func(place, hclsyntax.Expression) {
	return func(at place, expr hclsyntax.Expression) {
		v, ok := d.scalar(at, expr, cty.String)
		if !ok {
			return
		}
		if *dst, ok = copyPolicies()[v.AsString()]; !ok {
			d.errorf(expr.Range(), "Invalid value", "%s", oneOf(at.attr, v.AsString(), copyPolicies()))
		}
	}
}

// oneOf words the mistake of a value that is none of the allowed ones.
func oneOf[V any](attr, got string, allowed map[string]V) string {
	names := sortedKeys(allowed)
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	text := fmt.Sprintf("%s must be %s, not %q.", attr, strings.Join(quoted, " or "), got)
	if near := nearestOf(got, names...); near != "" {
		text += fmt.Sprintf(" Did you mean %q?", near)
	}
	return text
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
