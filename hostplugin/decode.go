package hostplugin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/ndbridge/ndbridge/core"
)

// Load reads and checks a configuration file. Relative paths in it are made absolute, relative to
// the file.
//
// The error is a [*ConfigError] that lists all mistakes, or wraps [core.ErrConfig] and the cause if
// the file cannot be read.
func Load(path string) (Config, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return Config{}, &core.Error{
			Op: "load " + path, Kind: core.ErrConfig, Err: unwrapPath(err),
			Remedy: "give the path of an HCL file with program blocks",
		}
	}
	return Parse(path, src)
}

// Parse is [Load] for a file that is already in memory. The filename appears in diagnostics, and
// its directory is what relative paths are relative to. The error is a [*ConfigError].
func Parse(filename string, src []byte) (Config, error) {
	file, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	files := map[string]*hcl.File{filename: file}
	if diags.HasErrors() {
		return Config{}, newConfigError(diags, files)
	}
	dir, err := filepath.Abs(filepath.Dir(filename))
	if err != nil {
		return Config{}, &core.Error{Op: "load " + filename, Kind: core.ErrConfig, Err: err}
	}
	d := &decoder{dir: dir, eval: evalContext(), ranges: make(map[place]hcl.Range)}
	d.root(file.Body.(*hclsyntax.Body)) //nolint:forcetypeassert // ParseConfig documents this type
	c := checker{cfg: &d.cfg, ranges: d.ranges}
	c.check()
	diags = append(d.diags, c.diags...)
	if diags.HasErrors() {
		slices.SortStableFunc(diags, byPosition)
		return Config{}, newConfigError(diags, files)
	}
	return d.cfg, nil
}

// place names what a diagnostic is about: one attribute of one block, or one item of it. It ties a
// mistake that is found in the decoded Config to the text that it came from.
type place struct {
	block string // "program" or "adapter"
	index int    // which of its kind
	attr  string // "" is the block's header
	item  string // an element: args "2", env "PATH", quirk "0"
}

// decoder turns syntax into a Config and collects what does not fit the schema. What the values
// mean is the checker's matter.
type decoder struct {
	dir    string
	eval   *hcl.EvalContext
	cfg    Config
	ranges map[place]hcl.Range
	diags  hcl.Diagnostics
}

// attributes maps the attributes that a block may have to what reads them.
type attributes map[string]func(at place, expr hclsyntax.Expression)

// blocks maps the types of the blocks that a body may hold to what reads them.
type blocks map[string]func(b *hclsyntax.Block)

func (d *decoder) root(body *hclsyntax.Body) {
	d.body(place{}, "the file", body, nil, blocks{
		"program": d.program,
		"adapter": d.adapter,
	})
}

func (d *decoder) program(b *hclsyntax.Block) {
	at := place{block: "program", index: len(d.cfg.Programs)}
	var p Program
	p.Name = d.label(at, b, `program "camera" { ... }`)
	d.body(at, "a program block", b.Body, attributes{
		"python":                d.pathOrName(&p.Python),
		"script":                d.path(&p.Script),
		"module":                d.text(&p.Module),
		"args":                  d.texts(&p.Args),
		"env":                   d.textMap(&p.Env),
		"dir":                   d.path(&p.Dir),
		"plugin":                d.pathOrName(&p.Plugin),
		"checksum":              d.text(&p.Checksum),
		"shared_heap":           d.optionalBool(&p.SharedHeap),
		"shared_heap_threshold": d.size(&p.SharedHeapThreshold),
		"shared_heap_libraries": d.texts(&p.SharedHeapLibraries),
		"start_timeout":         d.duration(&p.StartTimeout),
	}, nil)
	d.cfg.Programs = append(d.cfg.Programs, p)
}

func (d *decoder) adapter(b *hclsyntax.Block) {
	at := place{block: "adapter", index: len(d.cfg.Adapters)}
	var a Adapter
	a.Name = d.label(at, b, `adapter "numpy" { ... }`)
	d.body(at, "an adapter block", b.Body, attributes{
		"copy": d.copyPolicy(&a.Copy),
	}, blocks{
		"quirk": func(b *hclsyntax.Block) { a.Quirks = append(a.Quirks, d.quirk(at, len(a.Quirks), b)) },
	})
	d.cfg.Adapters = append(d.cfg.Adapters, a)
}

func (d *decoder) quirk(at place, n int, b *hclsyntax.Block) QuirkSetting {
	at.attr, at.item = "quirk", fmt.Sprint(n)
	enabled := true
	q := QuirkSetting{ID: core.QuirkID(d.label(at, b, `quirk "numpy.some-quirk" { enabled = false }`))}
	inner := at
	inner.item += ".body"
	d.body(inner, "a quirk block", b.Body, attributes{"enabled": d.bool(&enabled)}, nil)
	q.Disabled = !enabled
	return q
}

// label takes a block's one label and records the block's header as its place.
func (d *decoder) label(at place, b *hclsyntax.Block, example string) string {
	d.ranges[at] = b.DefRange()
	if len(b.Labels) != 1 {
		d.errorf(b.DefRange(), "Wrong number of names", "This block has exactly one name, as in: %s", example)
		return ""
	}
	d.ranges[at] = b.LabelRanges[0]
	if b.Labels[0] == "" {
		d.errorf(b.LabelRanges[0], "Empty name", "This block needs a name, as in: %s", example)
	}
	return b.Labels[0]
}

// body reads the attributes and blocks of one body in the order in which they were written. what
// names it with its article: "a program block".
func (d *decoder) body(at place, what string, body *hclsyntax.Body, as attributes, bs blocks) {
	for _, a := range slices.SortedFunc(maps.Values(body.Attributes), attributeOrder) {
		read, ok := as[a.Name]
		if !ok {
			d.unknown(a.NameRange, "attribute", a.Name, what, as, bs)
			continue
		}
		p := at
		p.attr = a.Name
		if at.attr != "" { // an attribute of a block that is itself an item
			p = at
		}
		d.ranges[p] = a.Expr.Range()
		read(p, a.Expr)
	}
	for _, b := range body.Blocks {
		if read, ok := bs[b.Type]; ok {
			read(b)
			continue
		}
		d.unknown(b.TypeRange, "block", b.Type, what, as, bs)
	}
}

func attributeOrder(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte }

// unknown reports a name that the schema does not have: with what is near, else with what there is.
func (d *decoder) unknown(rng hcl.Range, kind, name, what string, as attributes, bs blocks) {
	attrNames, blockNames := slices.Sorted(maps.Keys(as)), slices.Sorted(maps.Keys(bs))
	same, other, otherKind := attrNames, blockNames, "block"
	if kind == "block" {
		same, other, otherKind = blockNames, attrNames, "attribute"
	}
	var b strings.Builder
	switch near := nearest(name, slices.Values(same)); {
	case slices.Contains(other, name) && otherKind == "block":
		fmt.Fprintf(&b, "%q is a block, not an attribute: leave out the equals sign. ", name)
	case slices.Contains(other, name):
		fmt.Fprintf(&b, "%q is an attribute, not a block: it needs an equals sign. ", name)
	case near != "":
		fmt.Fprintf(&b, "Did you mean %q? ", near)
	}
	switch {
	case len(same) > 0:
		fmt.Fprintf(&b, "The %ss of %s are: %s.", kind, what, strings.Join(same, ", "))
	default:
		fmt.Fprintf(&b, "There are no %ss in %s.", kind, what)
	}
	d.errorf(rng, fmt.Sprintf("Unknown %s %q", kind, name), "%s", b.String())
}

func (d *decoder) errorf(rng hcl.Range, summary, format string, args ...any) {
	d.diags = append(d.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &rng,
	})
}

// byPosition orders diagnostics as their subjects stand in the file.
func byPosition(a, b *hcl.Diagnostic) int {
	pos := func(d *hcl.Diagnostic) int {
		if d.Subject == nil {
			return -1
		}
		return d.Subject.Start.Byte
	}
	return pos(a) - pos(b)
}
