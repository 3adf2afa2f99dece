package doctor

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// Print writes what people want to know of a part.
func (p *Part) Print(w io.Writer, colour bool) error {
	var b strings.Builder
	width := render.Width(w)
	var mark, sgr string
	switch p.State {
	case Well:
		mark, sgr = "ok", "32"
	case Wrong:
		mark, sgr = "wrong", "31"
	case Absent:
		mark, sgr = "-", "2"
	}
	head := fmt.Sprintf("%-5s  %-11s  ", mark, p.Name)
	indent := strings.Repeat(" ", len(head))
	line := func(head, text string) { prose.Paragraph(&b, width, indent+head, text) }
	switch {
	case p.State == Absent && p.Version == "":
		prose.Paragraph(&b, width, head, "not installed")
	case p.Name == "interpreter" && p.Interpreter != "":
		prose.Paragraph(&b, width, head, p.Interpreter)
		line("", fmt.Sprintf("plugin %s, shared heap %s", p.Plugin, p.SharedHeap))
	case p.Version != "":
		prose.Paragraph(&b, width, head, p.Version)
	default:
		b.WriteString(strings.TrimRight(head, " ") + "\n")
	}
	line("", p.trials())
	line("quirks at work: ", p.quirks(true))
	line("in force, not tried: ", p.quirks(false))
	for _, problem := range p.Problems {
		line("", problem.Message)
		line("  remedy: ", problem.Remedy)
	}
	for _, note := range p.Notes {
		line("note: ", note.Message)
		line("  remedy: ", note.Remedy)
	}
	text := b.String()
	if colour {
		text = "\x1b[" + sgr + "m" + text[:len(mark)] + "\x1b[0m" + text[len(mark):]
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// trials says how many arrays came by which route.
func (p *Part) trials() string {
	if len(p.Tried) == 0 {
		return ""
	}
	var took []float64
	written := ""
	for _, t := range p.Tried {
		took = append(took, t.Milliseconds)
		if t.Written {
			written = "; writing works both ways"
		}
	}
	slices.Sort(took)
	var parts []string
	for _, route := range slices.Sorted(maps.Keys(p.Routes)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.Routes[route], route))
	}
	return fmt.Sprintf("%d arrays, %.1f ms each: %s", len(p.Tried), took[len(took)/2], strings.Join(parts, ", ")) + written
}

// quirks lists those in force that were seen at work, or those that were not.
func (p *Part) quirks(seen bool) string {
	var ids []string
	for _, q := range p.Quirks {
		if q.Seen == seen {
			ids = append(ids, string(q.ID))
		}
	}
	return strings.Join(ids, ", ")
}
