package prose_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"github.com/ndbridge/ndbridge/internal/prose"
)

func TestEscapes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct{ line, text string }{
		"":                              {"", ""},
		"plain: é 漢字 👍 \u00a0\u3000":    {"plain: é 漢字 👍 \u00a0\u3000", "plain: é 漢字 👍 \u00a0\u3000"},
		"a\nb\tc":                       {`a\nb\tc`, "a\nb\tc"},
		"\x1b[31mred\x1b[0m":            {`\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		"\x1b]0;title\x07":              {`\x1b]0;title\a`, `\x1b]0;title\a`},
		"over\rwritten\b":               {`over\rwritten\b`, `over\rwritten\b`},
		"\u009b31m":                     {`\u009b31m`, `\u009b31m`}, // CSI in one character
		"\x9b31m\xff":                   {`\x9b31m\xff`, `\x9b31m\xff`},
		"\u202etxt.exe\u2066":           {`\u202etxt.exe\u2066`, `\u202etxt.exe\u2066`},
		"\x7f\x00":                      {`\x7f\x00`, `\x7f\x00`},
		"\u2028\u200b\ufeff\U000e0041":  {`\u2028\u200b\ufeff\U000e0041`, `\u2028\u200b\ufeff\U000e0041`},
		"replaced \ufffd":               {"replaced \ufffd", "replaced \ufffd"},
		`C:\new "quoted"` + "\u00e9'\"": {`C:\new "quoted"` + "\u00e9'\"", `C:\new "quoted"` + "\u00e9'\""},
	} {
		if got := prose.Line(s); got != want.line {
			t.Errorf("Line(%q) = %q, want %q", s, got, want.line)
		}
		if got := prose.Text(s); got != want.text {
			t.Errorf("Text(%q) = %q, want %q", s, got, want.text)
		}
	}
}

// FuzzEscapes: whatever comes, nothing is left that a terminal obeys, and JSON keeps its meaning.
func FuzzEscapes(f *testing.F) {
	for _, s := range []string{"a\x1b[31m\n", "\u009b\u202e\U000e0041", "\xff\x9b\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		obeyed := func(text, but string) bool {
			for i, r := range text {
				if !unicode.IsGraphic(r) && !bytes.ContainsRune([]byte(but), r) || r == 0xFFFD && text[i] != 0xEF {
					return true
				}
			}
			return false
		}
		if got := prose.Line(s); obeyed(got, "") {
			t.Errorf("Line(%q) = %q", s, got)
		}
		if got := prose.Text(s); obeyed(got, "\n\t") {
			t.Errorf("Text(%q) = %q", s, got)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		got := prose.JSON(append(b, '\n'))
		if err := json.Unmarshal(b, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &after); err != nil || before != after || obeyed(string(got), "\n") {
			t.Errorf("JSON(%s) = %s, %v", b, got, err)
		}
	})
}
