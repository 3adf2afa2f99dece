package main

import (
	"strings"
	"testing"
	"unicode"
)

// hostile is a program that says what a terminal obeys wherever it can say anything.
const hostile = `
import sys
import ndbridge
import numpy as np

evil = "\x1b]0;title\x07\x1b[31m\u009b5m\u202e"
print("out", evil)
sys.stderr.write("err\t" + evil + "\r\n")
globals()["unnamed" + evil] = np.zeros(4)
ndbridge.publish(f'evil["{evil}"]', np.zeros(4))
tagged = np.zeros(4, [("f" + evil, "f4")])


class Bad:
    def __dlpack__(self, **keywords):
        raise ValueError(evil + "\nand more")

    def __dlpack_device__(self):
        return 1, 0


bad = Bad()
if len(sys.argv) > 1:
    raise RuntimeError(evil)
`

// TestNothingForTheTerminal: what a program or a configuration says is shown, and does nothing to a
// terminal.
func TestNothingForTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := file(t, dir, "hostile.py", hostile)
	config := file(t, dir, "hostile.hcl", "program \"p\" {\n  script = \"a\x1b[31m.py\"\n  dri = \"\u202e\"\n}\n")
	missing := file(t, dir, "missing.hcl", "program \"p\" {\n  script = \"a\x1b[31m\\u202e.py\"\n}\n")
	direct := func(what string, args ...string) []string {
		begin := []string{what, "--script", script, "--python", python(t)}
		if what != "run" {
			begin = append(begin, "--patience", "1m")
		}
		return append(begin, args...)
	}
	const shown = `\x1b]0;title\a\x1b[31m\u009b5m\u202e`
	const asJSON = `{"name":"evil[\"\\x1b]0;title\\x07\\x1b[31m\\x9b5m\\u202e\"]",` // a name's own spelling
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"view": {direct("view"), []string{
			"| out " + shown + "\n", "| err\t" + shown + "\n", "ValueError: " + shown + "\n  and more\n",
		}},
		"view --json":            {direct("view", "--json"), []string{asJSON, `ValueError: \u001b]0;title\u0007\u001b[31m\u009b5m\u202e\nand more`}},
		"tag":                    {direct("view", "tagged"), []string{`f\x1b]0;title`}},
		"ls":                     {direct("ls"), []string{`evil["\x1b]0;title\x07\x1b[31m\x9b5m\u202e"]  numpy  `, "ValueError: " + shown + `\nand more` + "\n"}},
		"ls --json":              {direct("ls", "--json"), []string{asJSON}},
		"exception":              {direct("view", "--", "raise"), []string{"ndbridge: run hostile: python error: RuntimeError: " + shown + "\n"}},
		"name":                   {direct("view", "a\x1b[31m\u202e"), []string{`a\x1b[31m\u202e`}},
		"flag":                   {[]string{"view", "--log-level", "\x1b[31m"}, []string{`--log-level \x1b[31m: expected`}},
		"configuration":          {[]string{"ls", "-c", config}, []string{`dri = "\u202e"`}},
		"file that is not there": {[]string{"ls", "-c", missing}, []string{`a\x1b[31m\u202e.py does not exist`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(t, c.args...)
			text := r.stdout + r.stderr
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }); i >= 0 {
				t.Errorf("%q is in\n%q", []rune(text[i:])[0], text)
			}
		})
	}
	t.Run("run", func(t *testing.T) { // which passes on what the program prints
		t.Parallel()
		r := command(t, direct("run")...)
		r.want(t, statusOK, "out \x1b]0;title\x07\x1b[31m\u009b5m\u202e\n", "err\t\x1b]0;title\x07\x1b[31m\u009b5m\u202e\r\n")
	})
}
