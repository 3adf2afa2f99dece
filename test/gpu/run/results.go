package main

import (
	"context"
	_ "embed" // machine.py
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/test/gpu/report"
)

//go:embed machine.py
var machineScript string

// results is what gpu.json holds.
type results struct {
	Date     string          `json:"date"`
	Command  string          `json:"command"`
	Machine  []report.Field  `json:"machine"`
	Sections []sectionResult `json:"sections"`
}

func newResults(ctx context.Context, opts options) *results {
	r := &results{Date: time.Now().UTC().Format(time.DateOnly), Command: opts.command}
	text, err := exec.CommandContext(ctx, opts.python, "-c", machineScript).Output()
	if err == nil {
		err = json.Unmarshal(text, &r.Machine)
	}
	if err != nil {
		r.Machine = append(r.Machine, report.Field{Name: "error", Value: err.Error()})
	}
	r.Machine = append(r.Machine, report.Field{Name: "tested", Value: strings.ReplaceAll(opts.frameworks, ",", ", ")})
	return r
}

// write writes both files anew.
func (r *results) write(opts options) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(opts.out, "gpu.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(opts.out, "gpu.md"), []byte(places(opts).Replace(r.markdown())), 0o644)
}

func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the GPU tests say, %s\n\n", r.Date)
	b.WriteString("Written by `make test-gpu`; what failed says so. Nothing here was edited by hand.\n\n")
	b.WriteString("| | |\n| --- | --- |\n")
	for _, f := range r.Machine {
		fmt.Fprintf(&b, "| %s | %s |\n", report.Cell(f.Name), report.Cell(f.Value))
	}
	fmt.Fprintf(&b, "| command | `%s` |\n", r.Command)
	b.WriteString("\n| section | tests | passed | failed | not run | time |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, s := range r.Sections {
		n := s.count()
		fmt.Fprintf(&b, "| [%s](#%s) | %d | %d | %d | %d | %.0f s |\n",
			s.Title, anchor(s.Title), n.all, n.passed, n.all-n.passed-n.skipped, n.skipped, n.took.Seconds())
	}
	for _, s := range r.Sections {
		s.markdown(&b)
	}
	return b.String()
}

type counts struct {
	all, passed int
	skipped     int // for want of what this machine lacks, which their output names
	took        time.Duration
}

// count counts tests without those that only hold others.
func (r *sectionResult) count() counts {
	var n counts
	for _, s := range r.Steps {
		n.took += s.Took
		for i := range s.Tests {
			if s.holds(i) {
				continue
			}
			n.all++
			switch s.Tests[i].Result {
			case "PASS":
				n.passed++
			case "SKIP":
				n.skipped++
			}
		}
		if s.Error != "" && len(s.Tests) == 0 {
			n.all++
		}
	}
	return n
}

// holds says whether a test only holds others.
func (r *stepResult) holds(i int) bool {
	part := func(t testResult) bool { return strings.HasPrefix(t.Name, r.Tests[i].Name+"/") }
	return slices.ContainsFunc(r.Tests, part)
}

func (r *stepResult) summary() string {
	s := sectionResult{Steps: []stepResult{*r}}
	n := s.count()
	text := fmt.Sprintf("%d of %d passed, %.1f s", n.passed, n.all, r.Took.Seconds())
	if n.skipped > 0 {
		text += fmt.Sprintf(", %d not run", n.skipped)
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}

func (r *sectionResult) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n", r.Title)
	_ = report.WriteTables(b, r.Rows) // a strings.Builder takes all
	b.WriteString("\n| test | result | time |\n| --- | --- | --- |\n")
	for _, s := range r.Steps {
		if s.Error != "" {
			fmt.Fprintf(b, "| `%s` | %s | |\n", s.Command, report.Cell(s.Error))
		}
		for i, t := range s.Tests {
			if !s.holds(i) {
				fmt.Fprintf(b, "| %s %s | %s | %s |\n", s.Package, report.Cell(t.Name), t.Result, t.Took)
			}
		}
	}
	for _, s := range r.Steps {
		for _, t := range s.Tests {
			if t.Result != "PASS" && strings.TrimSpace(t.Output) != "" {
				fmt.Fprintf(b, "\n%s %s:\n\n```\n%s\n```\n", s.Package, t.Name, t.Output)
			}
		}
	}
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		}
	}
	return b.String()
}
