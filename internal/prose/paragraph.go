package prose

import "strings"

// Paragraph sets a text in lines of a width, the first behind a head and the others below its end, without
// what a terminal obeys. A text without words is none.
func Paragraph(b *strings.Builder, width int, head, text string) {
	line := head
	indent := strings.Repeat(" ", len(head))
	for i, word := range strings.Fields(Text(text)) {
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
