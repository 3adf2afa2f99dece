package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/stats"
)

// writeSummary writes what people want to know about a view, with a picture of its values.
func writeSummary(ctx context.Context, w io.Writer, label string, v *core.View, opts render.TextOptions) error {
	var b strings.Builder
	l := v.Layout()
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s  %s\n", key, prose.Line(fmt.Sprintf(format, args...)))
	}
	label = prose.Line(label)
	if opts.Depth == render.Mono {
		fmt.Fprintf(&b, "%s\n", label)
	} else {
		fmt.Fprintf(&b, "\x1b[1m%s\x1b[0m\n", label)
	}
	line("framework", "%s", v.Framework())
	line("dtype", "%s", dtypeText(l))
	line("shape", "%s", render.Shape(l))
	line("strides", "%s", stridesText(l))
	line("device", "%v", l.Device())
	line("size", "%s", sizeText(l.NBytes()))
	line("route", "%s", routeText(v))
	line("writable", "%s", writableText(v))
	if quirks := v.Quirks(); len(quirks) > 0 {
		line("quirks", "%s", joined(quirks))
	}
	if l.Len() > 1 {
		if s, err := stats.Of(ctx, v, &stats.Options{Sample: maxSamples}); err == nil {
			line("values", "%s", statsText(s, l))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if !l.Device().HostReadable() {
		return nil
	}
	return render.Text(ctx, &indented{w: w}, v, opts)
}

func dtypeText(l core.Layout) string {
	if l.Tag() != "" {
		return fmt.Sprintf("%s, as %v", l.Tag(), l.DType())
	}
	return l.DType().String()
}

func stridesText(l core.Layout) string {
	strides := l.Strides()
	if l.DType().Packed() {
		return "none: elements share bytes"
	}
	texts := make([]string, len(strides))
	for i, s := range strides {
		texts[i] = strconv.Itoa(s)
	}
	if len(texts) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s bytes (%s)", strings.Join(texts, ", "), orderText(l))
}

// orderText says in a word how the elements lie.
func orderText(l core.Layout) string {
	if l.Contiguous() {
		return "row-major"
	}
	if t, err := l.Transpose(); err == nil && t.Contiguous() {
		return "column-major"
	}
	repeats, backwards := false, false
	for axis := range l.Rank() {
		repeats = repeats || l.Stride(axis) == 0 && l.Dim(axis) > 1
		backwards = backwards || l.Stride(axis) < 0 && l.Dim(axis) > 1
	}
	switch {
	case repeats:
		return "repeated"
	case backwards:
		return "backwards"
	}
	return "with gaps or permuted"
}

// sizeText writes a number of bytes.
func sizeText(n int64) string {
	if n < 1024 {
		return render.Size(n)
	}
	return fmt.Sprintf("%s (%d bytes)", render.Size(n), n)
}

// routeText says how the memory got here, in words.
func routeText(v *core.View) string {
	switch v.Route() {
	case contract.RouteEmpty:
		return "none: there are no elements"
	case contract.RouteSharedHeap:
		return "shared-heap: the program's own pages, no copy"
	case contract.RouteMappedFile:
		return "mapped-file: the pages of the program's own file, no copy"
	case contract.RouteStaged:
		return fmt.Sprintf("staged: a copy, because %s (%v)", reasonText(v.Reason()), v.Reason())
	default:
		return string(v.Route())
	}
}

func reasonText(r core.Reason) string {
	switch r {
	case contract.ReasonBelowThreshold:
		return "it is too small for the shared heap"
	case contract.ReasonOutsideHeap:
		return "its memory was not allocated in the shared heap"
	case contract.ReasonHeapOff:
		return "the program runs without the shared heap"
	case contract.ReasonFrozen:
		return "the program has forked since it was made"
	case contract.ReasonPrivateMapping:
		return "it is a private mapping of a file"
	case contract.ReasonFileGone:
		return "its file cannot be opened any more"
	case contract.ReasonMappedFile:
		return "its file could be truncated, and mapped_files is \"copy\""
	case contract.ReasonConverted:
		return "its framework had to make a new array"
	default:
		return "it could not be shared"
	}
}

func writableText(v *core.View) string {
	switch {
	case v.ReadOnly():
		return "no: the array is read-only"
	case v.Writable():
		return "yes, and this view may write"
	}
	return "yes, but not through this view"
}

func joined(quirks []core.QuirkID) string {
	texts := make([]string, len(quirks))
	for i, q := range quirks {
		texts[i] = string(q)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// maxSamples is how many elements of an array a summary looks at.
const maxSamples = 1 << 26

func statsText(s *stats.Summary, l core.Layout) string {
	d := l.DType()
	var parts []string
	if s.Finite() > 0 {
		what := ""
		if d.Code() == core.Complex64.Code() {
			what = " (magnitudes)"
		}
		parts = append(parts, fmt.Sprintf("%s to %s, mean %s%s",
			render.Number(s.Min, d), render.Number(s.Max, d), strconv.FormatFloat(s.Mean, 'g', 6, 64), what))
	}
	if s.NaN > 0 {
		parts = append(parts, fmt.Sprintf("%d NaN", s.NaN))
	}
	if inf := s.PosInf + s.NegInf; inf > 0 {
		parts = append(parts, fmt.Sprintf("%d infinite", inf))
	}
	if !s.Exact() {
		parts = append(parts, fmt.Sprintf("of %d of the elements", s.Seen))
	}
	return strings.Join(parts, "; ")
}

// indented writes each line a little to the right.
type indented struct {
	w      io.Writer
	inLine bool
}

func (i *indented) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		if !i.inLine {
			b.WriteString("  ")
		}
		b.WriteString(line)
		i.inLine = !strings.HasSuffix(line, "\n")
	}
	if _, err := io.WriteString(i.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
