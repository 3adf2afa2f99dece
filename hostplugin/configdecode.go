package hostplugin

import (
	"os"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
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
	reader, err := newHCLReader(filename)
	if err != nil {
		return Config{}, &core.Error{Op: "load " + filename, Kind: core.ErrConfig, Err: err}
	}
	d := &decoder{hclReader: reader}
	d.root(file.Body.(*hclsyntax.Body)) //nolint:errcheck // ParseConfig documents this type
	c := checker{cfg: &d.cfg, ranges: d.Ranges}
	c.check()
	diags = slices.Concat(d.Diags, c.diags)
	if diags.HasErrors() {
		slices.SortStableFunc(diags, byPosition)
		return Config{}, newConfigError(diags, files)
	}
	return d.cfg, nil
}

// byPosition orders diagnostics as their subjects stand in the file.
func byPosition(a, b *hcl.Diagnostic) int { return a.Subject.Start.Byte - b.Subject.Start.Byte }

// decoder turns syntax into a Config and collects what does not fit the schema. What the values
// mean is the checker's matter.
type decoder struct {
	*hclReader
	cfg Config
}

func (d *decoder) root(body *hclsyntax.Body) {
	d.Body(place{}, "the file", body, nil, hclBlocks{
		"program": d.program,
		"adapter": d.adapter,
	})
}

func (d *decoder) program(b *hclsyntax.Block) {
	at := place{Block: "program", Index: len(d.cfg.Programs)}
	var p Program
	p.Name = d.Label(at, b, `program "camera" { ... }`)
	promote := map[string]string{"always": "always", "safe": "safe", "never": "never"}
	mappedFiles := map[string]bool{"share": false, "copy": true}
	d.Body(at, "a program block", b.Body, hclAttributes{
		"python":                d.PathOrName(&p.Python),
		"script":                d.Path(&p.Script),
		"module":                d.Text(&p.Module),
		"args":                  d.Texts(&p.Args),
		"env":                   d.TextMap(&p.Env),
		"dir":                   d.Path(&p.Dir),
		"plugin":                d.PathOrName(&p.Plugin),
		"checksum":              d.Text(&p.Checksum),
		"shared_heap":           d.Off(&p.SharedHeap.Off),
		"shared_heap_threshold": d.Size(&p.SharedHeap.Threshold),
		"shared_heap_libraries": d.Texts(&p.SharedHeap.Libraries),
		"promote":               hclEnum(d.hclReader, &p.SharedHeap.Promote, promote),
		"mapped_files":          hclEnum(d.hclReader, &p.CopyMappedFiles, mappedFiles),
		"handoff":               d.Off(&p.Handoff.Off),
		"handoff_spin":          d.Spin(&p.Handoff.Spin),
		"handoff_slots":         d.Count(&p.Handoff.Slots),
		"workers":               d.Count(&p.Workers),
		"arguments":             d.Text(&p.Arguments),
		"on_stuck":              hclEnum(d.hclReader, &p.OnStuck, map[string]string{"wait": "wait", onStuckEnd: onStuckEnd}),
		"stuck_timeout":         d.Duration(&p.StuckTimeout),
		"start_timeout":         d.Duration(&p.StartTimeout),
		"stop_timeout":          d.Duration(&p.StopTimeout),
	}, nil)
	d.cfg.Programs = append(d.cfg.Programs, p)
}

func (d *decoder) adapter(b *hclsyntax.Block) {
	at := place{Block: "adapter", Index: len(d.cfg.Adapters)}
	var a Adapter
	a.Name = d.Label(at, b, `adapter "numpy" { ... }`)
	policies := map[string]contract.CopyPolicy{"never": contract.CopyNever, "if-needed": contract.CopyIfNeeded}
	syncs := map[string]contract.SyncPolicy{"device": contract.SyncDevice, "stream": contract.SyncStream}
	d.Body(at, "an adapter block", b.Body, hclAttributes{
		"copy": hclEnum(d.hclReader, &a.Copy, policies),
		"sync": hclEnum(d.hclReader, &a.Sync, syncs),
	}, hclBlocks{
		"quirk": func(b *hclsyntax.Block) {
			a.Quirks = append(a.Quirks, d.quirk(at.At("quirk").Nth(len(a.Quirks)), b))
		},
	})
	d.cfg.Adapters = append(d.cfg.Adapters, a)
}

func (d *decoder) quirk(at place, b *hclsyntax.Block) QuirkSetting {
	enabled := true
	q := QuirkSetting{ID: core.QuirkID(d.Label(at, b, `quirk "numpy.some-quirk" { enabled = false }`))}
	d.Body(at, "a quirk block", b.Body, hclAttributes{
		"enabled": d.Bool(&enabled),
		"effect":  d.Text(&q.Effect),
	}, nil)
	q.Disabled = !enabled
	return q
}
