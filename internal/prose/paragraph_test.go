package prose

import (
	"strings"
	"testing"
)

func TestParagraph(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ head, text, want string }{
		{"", "", ""},
		{"  remedy: ", "", ""},
		{"", "one", "one\n"},
		{"", "one  two\nthree four", "one two\nthree four\n"},
		{"say: ", "one two three", "say: one two\n     three\n"},
		{"", "\x1b[2J x", "\\x1b[2J x\n"},
		{"", "a-word-that-is-too-long x", "a-word-that-is-too-long\nx\n"},
	} {
		var b strings.Builder
		if Paragraph(&b, 12, c.head, c.text); b.String() != c.want {
			t.Errorf("%q %q became %q, want %q", c.head, c.text, b.String(), c.want)
		}
	}
}
