package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core/contract"
)

// event is a line of `go test -json`.
type event struct {
	Action, Test, Output string
	Key, Value           string // of an attribute
}

// test runs the tests of a framework's adapter under these interpreters. That tests fail is no error.
func test(ctx context.Context, f framework, pythons []string) ([]event, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout=60m", "./adapters/"+f.name)
	variable := "NDBRIDGE_TEST_PYTHONS_" + strings.ToUpper(f.name)
	if f.name == "numpy" {
		variable = "NDBRIDGE_TEST_PYTHONS"
	}
	cmd.Env = append(os.Environ(), variable+"="+strings.Join(pythons, string(filepath.ListSeparator)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("test %s: %w", f.name, err)
	}
	return parseEvents(out)
}

func parseEvents(text []byte) ([]event, error) {
	var events []event
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return events, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the events of go test: %w", err)
		}
		events = append(events, e)
	}
}

// A cell says what was tested of one version of a framework under one Python.
type cell struct {
	version        string
	python         string // "3.11"
	interpreter    string // "CPython 3.11.7"
	arrays, quirks int    // that were checked
	passed, failed []string
}

// cells sorts the results of tests by the versions that they met. The last part of such a test's name is
// its environment; a test that tells of no version in an environment where others do counts for theirs.
func cells(events []event) []cell {
	environments := map[string]*cell{}
	for _, e := range events {
		if e.Action != "attr" {
			continue
		}
		_, env := split(e.Test)
		c := environments[env]
		if c == nil {
			c = &cell{}
			environments[env] = c
		}
		c.attribute(e.Key, e.Value)
	}
	for _, e := range events {
		name, env := split(e.Test)
		c := environments[env]
		switch {
		case c == nil || env == "":
		case e.Action == "pass":
			c.passed = append(c.passed, name)
		case e.Action == "fail" || e.Action == "skip":
			c.failed = append(c.failed, name)
		}
	}
	return merge(slices.Collect(maps.Values(environments)))
}

// split divides a test's name into that of its function and that of its environment, if it has one.
func split(test string) (function, env string) {
	function, rest, _ := strings.Cut(test, "/")
	return function, rest[strings.LastIndex(rest, "/")+1:]
}

func (c *cell) attribute(key, value string) {
	n, _ := strconv.Atoi(value) // 0 if it is no number
	switch key {
	case "version":
		c.version, _, _ = strings.Cut(value, "+")
	case "python":
		c.interpreter = value
		c.python = minor(value)
	case "arrays":
		c.arrays += n
	case "quirks":
		c.quirks += n
	}
}

// minor gives "3.11" of "CPython 3.11.7".
func minor(interpreter string) string {
	parts := strings.Split(interpreter[strings.LastIndex(interpreter, " ")+1:], ".")
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// merge makes one cell of environments with the same versions, and sorts.
func merge(all []*cell) []cell {
	var merged []cell
	for _, c := range all {
		i := slices.IndexFunc(merged, func(o cell) bool { return o.version == c.version && o.python == c.python })
		if i < 0 {
			i = len(merged)
			merged = append(merged, cell{version: c.version, python: c.python, interpreter: c.interpreter})
		}
		m := &merged[i]
		m.arrays, m.quirks = max(m.arrays, c.arrays), max(m.quirks, c.quirks)
		m.passed, m.failed = append(m.passed, c.passed...), append(m.failed, c.failed...)
	}
	for i := range merged {
		slices.Sort(merged[i].passed)
		slices.Sort(merged[i].failed)
		merged[i].passed, merged[i].failed = slices.Compact(merged[i].passed), slices.Compact(merged[i].failed)
	}
	slices.SortFunc(merged, func(a, b cell) int {
		return cmp.Or(compare(a.version, b.version), compare(a.python, b.python))
	})
	return merged
}

// compare orders versions; the tests' frameworks say theirs as Python packages do.
func compare(a, b string) int {
	x, errX := contract.ParseVersion(a)
	y, errY := contract.ParseVersion(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

// failed lists the tests that failed or were skipped, and whether the package did for another reason.
func failed(events []event) []string {
	var names []string
	other := false
	for _, e := range events {
		switch {
		case e.Action == "fail" && e.Test == "":
			other = true
		case e.Test != "" && (e.Action == "fail" || e.Action == "skip"):
			names = append(names, e.Test)
		}
	}
	if other && len(names) == 0 {
		names = append(names, "the package")
	}
	slices.Sort(names)
	return names
}

// outputs gives what these tests have written, and what was written outside of all.
func outputs(events []event, tests []string) string {
	var text strings.Builder
	for _, e := range events {
		if strings.HasSuffix(e.Action, "output") && (e.Test == "" || slices.Contains(tests, e.Test)) {
			text.WriteString(e.Output)
		}
	}
	return text.String()
}
