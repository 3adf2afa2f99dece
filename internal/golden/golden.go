// Package golden compares files of the repository with what tests make them of, and with what they say that programs print.
package golden

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the files anew that tests make") //nolint:gochecknoglobals // a flag

// Compare holds a file to what it is made to be. With -update it writes the file.
func Compare(tb testing.TB, file string, made []byte) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(file, made, 0o666); err != nil { //nolint:gosec // a source file
			tb.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(got, made) {
		tb.Errorf("%s is older than what it is made from; make generate, or this test with -update, writes it:\n%s", file, made)
	}
}

// Shown holds a Markdown file to a text that it shows, as a block in a language: what a program prints, or a whole file.
func Shown(tb testing.TB, file, language, text string) {
	tb.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Contains(page, []byte("\n```"+language+"\n"+text+"```\n")) {
		tb.Errorf("%s does not show this as a block of %q:\n%s", file, language, text)
	}
}
