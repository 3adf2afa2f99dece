package hostplugin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/ndbridge/ndbridge/internal/prose"
)

// place names what a diagnostic is about: a block, an attribute of it, or an item of that. It ties a
// mistake that is found in decoded values to the text that they came from.
type place struct {
	Block string // the block's type; "" is the file itself
	Index int    // which of its kind
	Attr  string // "" is the block's header
	Item  string // an element: "2" of a list, "PATH" of a map
}

// At gives the place of an attribute of p's block.
func (p place) At(attr string) place { p.Attr, p.Item = attr, ""; return p }

// Key gives the place of the item key of p's attribute.
func (p place) Key(key string) place { p.Item = key; return p }

// Nth gives the place of element i of p's attribute.
func (p place) Nth(i int) place { return p.Key(strconv.Itoa(i)) }

// name is what the attribute at p is called where it stands.
func (p place) name() string {
	if _, name, ok := strings.Cut(p.Item, "."); ok {
		return name
	}
	return p.Attr
}

// hclReader reads the bodies of an HCL file into Go values. It collects every mistake, each with its place, what is
// allowed there, and what was probably meant.
type hclReader struct {
	// Diags are the mistakes found so far.
	Diags hcl.Diagnostics
	// Ranges tells where each place stands in the file: the places that were written, with whatever
	// mistakes, and not null.
	Ranges map[place]hcl.Range

	dir  string
	eval *hcl.EvalContext
}

// newHCLReader makes a reader for a file in the directory of filename, to which relative paths in it are
// relative.
func newHCLReader(filename string) (*hclReader, error) {
	dir, err := filepath.Abs(filepath.Dir(filename))
	if err != nil {
		return nil, err
	}
	return &hclReader{Ranges: make(map[place]hcl.Range), dir: dir, eval: evalContext()}, nil
}

// A hclValue reads one attribute's expression.
type hclValue func(at place, expr hclsyntax.Expression)

// hclAttributes are those that a body may have.
type hclAttributes map[string]hclValue

// hclBlocks are the types of the blocks that a body may hold.
type hclBlocks map[string]func(b *hclsyntax.Block)

// Label gives the one name of a block, or "" with a mistake. The place is the block's from now on.
func (r *hclReader) Label(at place, b *hclsyntax.Block, example string) string {
	r.Ranges[at] = b.DefRange()
	if len(b.Labels) != 1 {
		r.Errorf(b.DefRange(), "Wrong number of names", "This block has exactly one name, as in: %s", example)
		return ""
	}
	r.Ranges[at] = b.LabelRanges[0]
	if b.Labels[0] == "" {
		r.Errorf(b.LabelRanges[0], "Empty name", "This block needs a name, as in: %s", example)
	}
	return b.Labels[0]
}

// Body reads attributes and blocks in the order in which they were written. The attributes' places
// are those of at's block, or items of at's item, "0.enabled", if at is one. what names the body with
// its article: "a program block".
func (r *hclReader) Body(at place, what string, body *hclsyntax.Body, as hclAttributes, bs hclBlocks) {
	for _, a := range slices.SortedFunc(maps.Values(body.Attributes), attributeOrder) {
		read, ok := as[a.Name]
		if !ok {
			r.unknown(a.NameRange, "attribute", a.Name, what, as, bs)
			continue
		}
		place := at.Key(at.Item + "." + a.Name)
		if at.Attr == "" {
			place = at.At(a.Name)
		}
		r.Ranges[place] = a.Expr.Range()
		read(place, a.Expr)
	}
	for _, b := range body.Blocks {
		if read, ok := bs[b.Type]; ok {
			read(b)
			continue
		}
		r.unknown(b.TypeRange, "block", b.Type, what, as, bs)
	}
}

func attributeOrder(a, b *hclsyntax.Attribute) int {
	return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte
}

// unknown reports a name that the schema does not have: with what is near, and with what there is.
func (r *hclReader) unknown(rng hcl.Range, kind, name, what string, as hclAttributes, bs hclBlocks) {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(as))
	_, isAttribute := as[name]
	_, isBlock := bs[name]
	if kind == "block" {
		names = slices.Sorted(maps.Keys(bs))
	}
	switch near := prose.Nearest(name, slices.Values(names)); {
	case isBlock:
		fmt.Fprintf(&b, "%q is a block, not an attribute: leave out the equals sign. ", name)
	case isAttribute:
		fmt.Fprintf(&b, "%q is an attribute, not a block: it needs an equals sign. ", name)
	case near != "":
		fmt.Fprintf(&b, "Did you mean %q? ", near)
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "The %ss of %s are: %s.", kind, what, strings.Join(names, ", "))
	} else {
		fmt.Fprintf(&b, "There are no %ss in %s.", kind, what)
	}
	r.Errorf(rng, fmt.Sprintf("Unknown %s %q", kind, name), "%s", b.String())
}

// Errorf reports a mistake.
func (r *hclReader) Errorf(rng hcl.Range, summary, format string, args ...any) {
	r.Diags = append(r.Diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng,
	})
}
