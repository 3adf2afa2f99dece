package console

import (
	"io"
	"strings"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// width is how wide text is set where nobody says how wide the place is.
const width = 100

// Width is how wide lines may be that are written to w.
func Width(w io.Writer) int {
	if columns, terminal := render.Columns(w); terminal && columns >= 40 {
		return columns
	}
	return width
}

// Paragraph sets a text in lines of a width, the first behind a head and the others below its end, without
// what a terminal obeys. A text without words is none.
func Paragraph(b *strings.Builder, width int, head, text string) {
	line := head
	indent := strings.Repeat(" ", len(head))
	for i, word := range strings.Fields(prose.Text(text)) {
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = indent + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	if text != "" {
		b.WriteString(line + "\n")
	}
}
