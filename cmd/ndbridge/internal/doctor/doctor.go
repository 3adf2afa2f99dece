// Package doctor finds out whether a user's interpreter, and the array frameworks in it, work with
// ndbridge: it makes arrays of many kinds in real programs, looks at each as a host would, and compares
// what came with what Python itself says is in them.
package doctor

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/quirks"
)

//go:embed probes/*.py
var probes embed.FS

// Options say what is examined.
type Options struct {
	Python     string        // the interpreter, as in a configuration
	Plugin     string        // as in a configuration
	Frameworks []string      // only these, which must be there; nil means all that are there
	Timeout    time.Duration // of each program
	Progress   func(what string)
}

// Frameworks lists those that are examined, in order: all that come with an adapter.
func Frameworks() []string {
	var names []string
	for _, t := range quirks.Tables() {
		names = append(names, t.Framework)
	}
	return names
}

// module is what a framework is imported as.
func module(framework string) string {
	switch framework {
	case "cudacore":
		return "cuda.core"
	case "dali":
		return "nvidia.dali"
	default:
		return framework
	}
}

// Examine examines the machine, the interpreter, and each framework in it, and calls f with what it found
// of each, until f fails or ctx ends. An error is f's, the context's, or that the examination itself could
// not be made.
func Examine(ctx context.Context, opts Options, f func(*Part) error) (err error) {
	dir, err := os.MkdirTemp("", "ndbridge-doctor-")
	if err != nil {
		return &core.Error{Op: "doctor", Kind: core.ErrUnavailable, Err: err, Remedy: "set TMPDIR to a directory that can be written"}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := unpack(dir); err != nil {
		return err
	}
	d := &doctor{opts: opts, dir: dir}
	if err := f(d.machine()); err != nil {
		return err
	}
	opts.Progress("examining the interpreter")
	python, there := d.interpreter(ctx)
	if err := tell(ctx, f, python); err != nil || there == nil {
		return err
	}
	for _, name := range Frameworks() {
		asked := slices.Contains(opts.Frameworks, name)
		held := slices.Contains(there.info.Adapters, name)
		if !asked && (len(opts.Frameworks) > 0 || !held) {
			continue
		}
		opts.Progress("examining " + name)
		part := newPart(name)
		switch {
		case !held:
			part.wrong("the plugin "+there.info.Plugin+" has no adapter for it", "name with --plugin one that has, or none")
		case slices.Contains(there.said.Found, module(name)):
			part = d.framework(ctx, name)
		case asked:
			part.wrong("it is not installed", "install it, or name with --python the interpreter that has it, not "+python.Interpreter)
		default:
			part.State = Absent
		}
		if err := tell(ctx, f, part); err != nil {
			return err
		}
	}
	return nil
}

// tell calls f, unless what is to be told is the end of ctx.
func tell(ctx context.Context, f func(*Part) error, p *Part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(p)
}

// unpack writes the probes where an interpreter can read them.
func unpack(dir string) error {
	return fs.WalkDir(probes, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := probes.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600)
	})
}

type doctor struct {
	opts Options
	dir  string // that holds the probes
}

// interpreter examines the interpreter, and gives what was found in it, or nil if nothing can be run there.
func (d *doctor) interpreter(ctx context.Context) (part *Part, there *result) {
	part = newPart("interpreter")
	var modules []string
	for _, name := range Frameworks() {
		modules = append(modules, module(name))
	}
	r, err := d.probe(ctx, "python", true, modules...)
	part.Interpreter, part.Version, part.SharedHeap, part.Plugin = r.info.Interpreter, versionOf(r.info.Interpreter), r.info.SharedHeap, r.info.Plugin
	if err != nil {
		part.blame(err, "")
		return part, nil
	}
	part.judge(r)
	if r.said.Descriptors < enoughDescriptors {
		part.wrong(fmt.Sprintf("a program may have only %d descriptors open", r.said.Descriptors), "ulimit -n 1024")
	}
	if r.info.SharedHeap != "on" {
		part.wrong("the shared heap is "+r.info.SharedHeap+": all arrays are copied", heapRemedy)
	}
	return part, &r
}

// enoughDescriptors is what a program with views of some hundred files needs.
const enoughDescriptors = 256

const heapRemedy = "put libndbridge-heap.so beside the plugin (make build makes both), and use an interpreter " +
	"that is dynamically linked with glibc"

// versionOf takes the version out of "CPython 3.11.7 (/usr/bin/python3)".
func versionOf(interpreter string) string {
	if words := strings.Fields(interpreter); len(words) > 1 {
		return words[1]
	}
	return ""
}

// framework examines one framework, in a program of its own: one that breaks its program breaks no other.
func (d *doctor) framework(ctx context.Context, name string) *Part {
	part := newPart(name)
	r, err := d.probe(ctx, name, true)
	part.Interpreter, part.SharedHeap, part.Plugin = r.info.Interpreter, r.info.SharedHeap, r.info.Plugin
	for _, f := range r.info.Frameworks {
		if f.Name == name {
			part.Version = f.Version
			for _, q := range f.Quirks {
				part.Quirks = append(part.Quirks, Quirk{ID: q.ID})
			}
		}
	}
	if err == nil && r.said.Without != "" {
		part.State = Absent
		part.Notes = append(part.Notes, Problem{Message: r.said.Without})
		return part
	}
	if err == nil {
		part.judge(r)
		return part
	}
	part.blame(err, fmt.Sprintf("%s -c 'import %s'", cmp.Or(d.opts.Python, "python3"), module(name)))
	if ctx.Err() == nil && !errors.Is(err, core.ErrPython) {
		// Whoever crashes with the shared heap alone must be told.
		if _, without := d.probe(ctx, name, false); without == nil {
			part.wrong("it works without the shared heap", "set shared_heap = false for such programs, and report this")
		}
	}
	return part
}

// result is what came of one probe.
type result struct {
	info  contract.Info
	said  report
	views []outcome // of what the probe has made, in its order
}

// report is what a probe says.
type report struct {
	Found       []string // modules that can be imported
	Descriptors int      // how many may be open
	Without     string   // why none of its arrays can be made, which is nobody's fault
	Arrays      []array
}

// array is one array in a report.
type array struct {
	Name    string
	Quirk   core.QuirkID // it is a witness of
	Refused bool         // it must be refused, where the quirk is in force
	Shared  bool         // it must come without a copy
	Absent  string       // why there is none of the kind
	Shape   []int
	SHA256  string
}

// probe runs a program that makes arrays, and looks at each. The result holds what was found until an
// error.
func (d *doctor) probe(ctx context.Context, name string, heap bool, args ...string) (r result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.Timeout, fmt.Errorf("no end within %s", d.opts.Timeout))
	defer cancel()
	host, err := hostplugin.New(hostplugin.Config{Logger: slog.New(slog.DiscardHandler), Programs: []hostplugin.Program{{
		Name: name, Python: d.opts.Python, Script: filepath.Join(d.dir, "probe_"+name+".py"), Args: args,
		Plugin: d.opts.Plugin, SharedHeap: hostplugin.HeapOptions{Off: !heap}, StartTimeout: d.opts.Timeout,
		Env: map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}, Stdout: io.Discard, Stderr: io.Discard,
	}}})
	if err != nil {
		return r, err
	}
	defer host.Close() //nolint:errcheck // the log says if the program had to be killed
	s, err := host.Start(ctx, name)
	if err != nil {
		return r, err
	}
	if r.info, err = s.Info(ctx); err != nil {
		return r, err
	}
	if err := s.Wait(ctx); err != nil {
		return r, err
	}
	if r.said, err = reportOf(ctx, s); err != nil {
		return r, err
	}
	for _, a := range r.said.Arrays {
		if a.Absent == "" {
			r.views = append(r.views, look(ctx, s, a))
		}
	}
	// A busy interpreter says what it knew last: after the looks that is all.
	if r.info, err = s.Info(ctx); err != nil {
		return r, err
	}
	return r, s.Err()
}
