package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// maxSiblings is how many parts of one thing a tree shows, and enoughSiblings how many of them if there are more.
const (
	maxSiblings    = 16
	enoughSiblings = 12
)

// branch is a part of a name, with what it leads to.
type branch struct {
	label string
	entry *contract.Entry  // an array; nil: only a part of names
	value *contract.Number // a number; nil: likewise
	parts []*branch
	index map[string]*branch

	arrays  int // below it, itself included
	numbers int // likewise
	bytes   int64
}

// treeOf makes a tree of the names of arrays, whose order it keeps, and of numbers.
func treeOf(root string, found contract.Found) *branch {
	top := &branch{label: root}
	for i := range found.Entries {
		e := &found.Entries[i]
		at := top
		for _, b := range append([]*branch{top}, top.way(e.Name)...) {
			b.arrays++
			b.bytes += e.Layout.NBytes()
			at = b
		}
		at.entry = e
	}
	for i := range found.Numbers {
		n := &found.Numbers[i]
		at := top
		for _, b := range append([]*branch{top}, top.way(n.Name)...) {
			b.numbers++
			at = b
		}
		at.value = n
	}
	top.join()
	return top
}

// way gives the branches along a name, which it makes.
func (b *branch) way(name string) (all []*branch) {
	labels := []string{name}
	if path, err := names.Parse(name); err == nil {
		labels = []string{path.Root}
		if path.Of != (names.Function{}) {
			labels = []string{path.Of.String(), "." + path.Root}
		}
		for _, s := range path.Steps {
			labels = append(labels, s.String())
		}
	}
	for _, label := range labels {
		next := b.index[label]
		if next == nil {
			next = &branch{label: label}
			b.parts = append(b.parts, next)
			if b.index == nil {
				b.index = make(map[string]*branch)
			}
			b.index[label] = next
		}
		b = next
		all = append(all, b)
	}
	return all
}

// join makes one branch of each that leads to nothing but one other.
func (b *branch) join() {
	for _, part := range b.parts {
		for part.entry == nil && part.value == nil && len(part.parts) == 1 {
			only := part.parts[0]
			only.label = part.label + only.label
			*part = *only
		}
		part.join()
	}
}

// row is one line of a tree: its beginning, which says where it is, and columns.
type row struct {
	name    string
	columns []string
}

// rows lists the lines of what is below a branch. before is what stands before each.
func (b *branch) rows(before string) (all []row) {
	parts := b.parts
	if len(parts) > maxSiblings {
		parts = parts[:enoughSiblings]
	}
	rest := b.parts[len(parts):]
	for i, part := range parts {
		joint, below := "├─ ", "│  "
		if i == len(parts)-1 && len(rest) == 0 {
			joint, below = "└─ ", "   "
		}
		all = append(all, row{before + joint + prose.Line(strings.TrimPrefix(part.label, ".")), part.columns()})
		all = append(all, part.rows(before+below)...)
	}
	if len(rest) > 0 {
		others := &branch{}
		for _, part := range rest {
			others.arrays += part.arrays
			others.numbers += part.numbers
			others.bytes += part.bytes
		}
		all = append(all, row{fmt.Sprintf("%s└─ ... %d more", before, len(rest)), others.columns()})
	}
	return all
}

// columns says what a branch is: an array, or how much there is below it.
func (b *branch) columns() []string {
	switch e := b.entry; {
	case b.value != nil:
		return []string{b.value.Type(), numberText(*b.value)}
	case e == nil && b.arrays == 0 && b.numbers > 0:
		return []string{several(b.numbers, "number")}
	case e == nil && b.numbers > 0:
		return []string{several(b.arrays, "array") + ", " + render.Size(b.bytes) + ", " + several(b.numbers, "number")}
	case e == nil:
		return []string{several(b.arrays, "array") + ", " + render.Size(b.bytes)}
	case e.Err != nil:
		return []string{messageOf(*e)}
	default:
		return []string{dtypeOf(*e), render.Shape(e.Layout), render.Size(e.Layout.NBytes()), prose.Line(e.Framework) + marks(*e)}
	}
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// writeRows writes rows in columns, in lines of a width.
func writeRows(w io.Writer, rows []row, width int) error {
	var widths []int
	names := 0
	for _, r := range rows {
		names = max(names, utf8.RuneCountInString(r.name))
		for i, text := range r.columns[:max(len(r.columns)-1, 0)] { // what is last needs no room
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	names = min(names, width/2)
	for _, r := range rows {
		cells := []string{pad(r.name, names)}
		for i, text := range r.columns {
			if i < len(widths) && i < len(r.columns)-1 {
				text = pad(text, widths[i])
			}
			cells = append(cells, text)
		}
		line := strings.TrimRight(strings.Join(cells, "  "), " ")
		if _, err := fmt.Fprintln(w, render.Clip(line, width)); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0))
}

// tree prints what a program has as a tree of names, with the processes that come from it.
func (l *lister) tree(ctx context.Context, s session, program string, found contract.Found, width int) error {
	top := treeOf(program, found)
	rows := append([]row{{prose.Line(program), top.columns()}}, top.rows("")...)
	children, err := s.Children(ctx)
	if err != nil {
		children = nil // they cannot be seen from here
	}
	slices.SortFunc(children, func(a, b hostplugin.Child) int { return cmp.Compare(a.PID, b.PID) })
	for _, child := range children {
		text := fmt.Sprintf("ndbridge ls --attach %d", child.PID)
		if child.Err != nil {
			text = prose.Line(explain(child.Err).Message)
		}
		rows = append(rows, row{fmt.Sprintf("process %d %s", child.PID, prose.Line(child.Name)), []string{text}})
	}
	return writeRows(l.env.stdout, rows, width)
}
