package main

import (
	"fmt"
	"slices"
	"strings"
)

const header = `# What was tested on which versions

%s writes this file. A cell is one version of a framework under one Python:

- **passed**: the adapter's tests have passed there, with the real framework. The number of arrays is that of the kinds whose views were
  compared with what the framework says of them, byte by byte; that of quirks is how many of
  [the table](../QUIRKS.md) this version has, each of which was seen to do harm when switched off.
- **no wheel**: pip cannot install that version there; its reason stands below.
- **not run**: there are wheels, but no environment for them among the lists in [test/requirements](../../test/requirements).

`

// markdown renders the result as a file of the documentation.
func (m *matrix) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, header, "`make matrix`")
	passed, impossible, open := m.count()
	fmt.Fprintf(&text, "Cells: %d passed, %d no wheel, %d not run. Measured on %s with CPython %s.\n",
		passed, impossible, open, m.platform, strings.Join(m.pythons, ", "))
	for _, r := range m.results {
		fmt.Fprintf(&text, "\n## %s\n\n", r.framework.name)
		r.table(&text, m.pythons)
		r.reasons(&text)
	}
	return text.String()
}

func (m *matrix) count() (passed, impossible, open int) {
	for _, r := range m.results {
		for _, c := range r.cells {
			if len(c.failed) == 0 {
				passed++
			}
		}
		for _, g := range r.gaps {
			if g.reason == "" {
				open++
			} else {
				impossible++
			}
		}
	}
	return passed, impossible, open
}

func (r *result) table(text *strings.Builder, pythons []string) {
	fmt.Fprint(text, "| version |")
	for _, p := range pythons {
		fmt.Fprintf(text, " %s |", minor(p))
	}
	fmt.Fprintf(text, "\n|%s\n", strings.Repeat(" --- |", len(pythons)+1))
	for _, version := range versions(r.cells) {
		fmt.Fprintf(text, "| %s |", version)
		for _, p := range pythons {
			fmt.Fprintf(text, " %s |", r.cell(version, minor(p)))
		}
		fmt.Fprintln(text)
	}
	fmt.Fprintf(text, "\nTests that have passed in each: `%s`.\n", strings.Join(r.everywhere(), "`, `"))
}

// everywhere lists the tests that have passed in all cells.
func (r *result) everywhere() []string {
	var tests []string
	for _, test := range r.cells[0].passed {
		if !slices.ContainsFunc(r.cells, func(c cell) bool { return !slices.Contains(c.passed, test) }) {
			tests = append(tests, test)
		}
	}
	return tests
}

func (r *result) cell(version, python string) string {
	c := find(r.cells, version, python)
	switch {
	case c != nil && len(c.failed) > 0:
		return "**failed: " + strings.Join(c.failed, ", ") + "**"
	case c != nil:
		return fmt.Sprintf("passed: %d arrays, %d quirks", c.arrays, c.quirks)
	case slices.Contains(r.gaps, gap{version, python, ""}):
		return "not run"
	default:
		return "no wheel"
	}
}

// reasons lists what pip says, once for all Pythons that it says it of.
func (r *result) reasons(text *strings.Builder) {
	pythons := map[string][]string{}
	var order []string
	for _, g := range r.gaps {
		if g.reason == "" {
			continue
		}
		if pythons[g.reason] == nil {
			order = append(order, g.reason)
		}
		pythons[g.reason] = append(pythons[g.reason], g.python)
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprint(text, "\nWhat pip says where there is no wheel:\n\n")
	for _, reason := range order {
		fmt.Fprintf(text, "- Python %s: %s\n", strings.Join(pythons[reason], ", "), reason)
	}
}
