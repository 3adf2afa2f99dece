package hostplugin

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// Validate checks what a Config says without looking at the file system: whether files exist is
// seen when a program is started. The error is a [*ConfigError] with every mistake.
func (c Config) Validate() error {
	check := checker{cfg: &c}
	check.check()
	if check.diags.HasErrors() {
		return newConfigError(check.diags, nil)
	}
	return nil
}

// checker finds the mistakes that a decoded Config can have, whether it came from a file or not.
type checker struct {
	cfg    *Config
	ranges map[place]hcl.Range // nil for a Config written in Go
	diags  hcl.Diagnostics
}

func (c *checker) check() {
	for i := range c.cfg.Programs {
		c.program(place{Block: "program", Index: i}, &c.cfg.Programs[i])
	}
	for i := range c.cfg.Adapters {
		c.adapter(place{Block: "adapter", Index: i}, &c.cfg.Adapters[i])
	}
}

// errorf reports a mistake at a place. For a Config written in Go, the place goes into the text.
func (c *checker) errorf(at place, summary, format string, args ...any) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...)}
	if c.ranges == nil {
		d.Detail = c.object(at) + ": " + d.Detail
	} else if rng, ok := c.ranges[at]; ok {
		d.Subject = &rng
	} else {
		rng := c.ranges[at.At("")]
		d.Subject = &rng
	}
	c.diags = append(c.diags, d)
}

func (c *checker) object(at place) string {
	name := ""
	switch at.Block {
	case "program":
		name = c.cfg.Programs[at.Index].Name
	case "adapter":
		name = c.cfg.Adapters[at.Index].Name
	}
	return fmt.Sprintf("%s %q", at.Block, name)
}

// given reports whether an attribute was written, even if its value was a mistake.
func (c *checker) given(at place, attr string, set bool) bool {
	_, written := c.ranges[at.At(attr)]
	return set || written
}

func programName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`) }

func (c *checker) program(at place, p *Program) {
	switch first := slices.Index(slices.Collect(c.cfg.names()), p.Name); {
	case !programName().MatchString(p.Name) && (p.Name != "" || c.ranges == nil):
		c.errorf(at, "Invalid name",
			"A program's name consists of letters, digits, '_', '-' and '.', and does not begin with '-' or '.'; got %q.",
			p.Name)
	case first < at.Index && p.Name != "":
		c.errorf(at, "Duplicate program", "There is another program %q%s.", p.Name, c.elsewhere("program", first))
	}
	c.what(at, p)
	c.strings(at, p)
	c.plugin(at, p)
	c.heap(at, p)
	c.handoff(at, p)
	if how := p.OnStuck; how != "" && how != "wait" && how != onStuckEnd {
		c.errorf(at.At("on_stuck"), "Invalid value", `on_stuck must be "end" or "wait", not %q.`, how)
	}
	if p.StuckTimeout < 0 {
		c.errorf(at.At("stuck_timeout"), "Invalid duration", "stuck_timeout must be positive, not %s.", p.StuckTimeout)
	}
	if p.StartTimeout < 0 {
		c.errorf(at.At("start_timeout"), "Invalid duration", "start_timeout must be positive, not %s.", p.StartTimeout)
	}
	if p.StopTimeout < 0 {
		c.errorf(at.At("stop_timeout"), "Invalid duration", "stop_timeout must be positive, not %s.", p.StopTimeout)
	}
}

func (c *checker) elsewhere(block string, index int) string {
	rng, ok := c.ranges[place{Block: block, Index: index}]
	if !ok {
		return ""
	}
	return " at line " + strconv.Itoa(rng.Start.Line)
}

// what checks that a program says what to run, once.
func (c *checker) what(at place, p *Program) {
	script, module := c.given(at, "script", p.Script != ""), c.given(at, "module", p.Module != "")
	switch {
	case script && module:
		c.errorf(at.At("module"), "Two programs in one", "script and module exclude each other.")
	case script:
	case module:
		if strings.HasSuffix(p.Module, ".py") || strings.Contains(p.Module, "/") {
			c.errorf(at.At("module"), "Not a module", "%q is the name of a file; write script = %q.", p.Module, p.Module)
		}
	case c.given(at, "python", p.Python != ""):
		c.errorf(at, "Nothing to run", "A Python program needs script or module.")
	case !c.given(at, "plugin", p.Plugin != ""):
		c.errorf(at, "Nothing to run",
			"A program needs script or module (a Python program), or plugin (an executable that serves arrays).")
	}
}

// strings checks what the operating system will not take.
func (c *checker) strings(at place, p *Program) {
	attrs := map[string]string{
		"python": p.Python, "script": p.Script, "module": p.Module, "dir": p.Dir, "plugin": p.Plugin, "arguments": p.Arguments,
	}
	for _, attr := range slices.Sorted(maps.Keys(attrs)) {
		c.noNUL(at.At(attr), attrs[attr])
	}
	for i, arg := range p.Args {
		c.noNUL(at.At("args").Nth(i), arg)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		here := at.At("env").Key(name)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.errorf(here, "Invalid variable name", "An environment variable cannot be called %q.", name)
		case strings.HasPrefix(name, "NDBRIDGE_"), strings.HasPrefix(name, "PLUGIN_"):
			c.errorf(here, "Reserved variable name",
				"Variables that begin with NDBRIDGE_ or PLUGIN_ are set by the host, and taken away before the program runs; got %q.",
				name)
		}
		c.noNUL(here, p.Env[name])
	}
}

func (c *checker) noNUL(at place, s string) {
	if strings.ContainsRune(s, 0) {
		c.errorf(at, "Invalid text", "%s must not contain a NUL character.", at.Attr)
	}
}

func (c *checker) plugin(at place, p *Program) {
	if p.Checksum == "" {
		return
	}
	if _, err := process.ParseChecksum(p.Checksum); err != nil {
		c.errorf(at.At("checksum"), "Invalid checksum",
			"checksum must be \"sha256:\" and 64 hexadecimal digits, as in \"sha256:$(sha256sum FILE | cut -c1-64)\": %s.", err)
	}
}

func (c *checker) handoff(at place, p *Program) {
	if spin := p.Handoff.Spin; spin > maxHandoffSpin {
		c.errorf(at.At("handoff_spin"), "Invalid duration", "handoff_spin must be between 0s and %s, not %s.",
			maxHandoffSpin, spin)
	}
	if n := p.Handoff.Slots; n < 0 || n > handoff.MaxSlots {
		c.errorf(at.At("handoff_slots"), "Invalid number", "handoff_slots must be between 1 and %d.", handoff.MaxSlots)
	}
	if n := p.Workers; n < 0 || n > calls.MaxWorkers {
		c.errorf(at.At("workers"), "Invalid number", "workers must be between 1 and %d.", calls.MaxWorkers)
	}
}

func (c *checker) heap(at place, p *Program) {
	attrs := map[string]bool{
		"shared_heap":           p.SharedHeap.Off,
		"shared_heap_threshold": p.SharedHeap.Threshold != 0,
		"shared_heap_libraries": p.SharedHeap.Libraries != nil,
		"promote":               p.SharedHeap.Promote != "",
	}
	python := c.given(at, "script", p.Script != "") || c.given(at, "module", p.Module != "") ||
		c.given(at, "python", p.Python != "")
	for _, attr := range slices.Sorted(maps.Keys(attrs)) {
		if !python && c.given(at, attr, attrs[attr]) {
			c.errorf(at.At(attr), "Not a Python program", "%s is for programs with script or module only.", attr)
		}
	}
	if n := p.SharedHeap.Threshold; n != 0 && (n < minHeapThreshold || n > maxHeapThreshold) {
		c.errorf(at.At("shared_heap_threshold"), "Invalid size", "shared_heap_threshold must be between %s and %s.",
			formatSize(minHeapThreshold), formatSize(maxHeapThreshold))
	}
	if how := p.SharedHeap.Promote; !slices.Contains([]string{"", "always", "safe", "never"}, how) {
		c.errorf(at.At("promote"), "Invalid value", `promote must be "always" or "never" or "safe", not %q.`, how)
	}
	for i, lib := range p.SharedHeap.Libraries {
		if lib == "" || strings.ContainsAny(lib, ",\x00") {
			c.errorf(at.At("shared_heap_libraries").Nth(i), "Invalid library",
				"A library is named by a part of its file name, without a comma, such as \"libtorch\"; got %q.", lib)
		}
	}
}
