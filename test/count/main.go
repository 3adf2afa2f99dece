// Count prints figures of the source: how many folders, lines and exported names there are, how many
// examples, and how much test there is to the code. Run it in the root of the repository.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
)

// small is the number of lines up to which a folder's code counts as small.
const small = 60

// A file is one source file.
type file struct {
	name  string // from the root of the repository, with slashes
	text  []byte
	lines int
}

func (f file) isGo() bool   { return path.Ext(f.name) == ".go" }
func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// isCode reports whether the file is of what users get, or of an example.
func (f file) isCode() bool { return !f.isTest() && !strings.HasPrefix(f.name, "test/") }

// in reports whether the file lies in a folder or in one below it.
func (f file) in(folder string) bool { return strings.HasPrefix(f.name, folder+"/") }

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	files, err := sources(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(value any, what string) { fmt.Fprintf(w, "%v\t  %s\n", value, what) }
	folders, smallOnes, lines := folders(files)
	row(folders, "folders with Go")
	row(smallOnes, fmt.Sprintf("folders with 1 to %d lines of Go that is no test", small))
	row(lines, "lines of Go and C without tests and generated code")
	for _, folder := range []string{"core", "hostplugin", "cuda"} {
		names, err := exported(folder)
		if err != nil {
			return err
		}
		row(names, "exported names of "+folder)
	}
	for _, folder := range []string{"core", "cuda", "adapters/kit"} {
		n, err := examples(files, folder)
		if err != nil {
			return err
		}
		row(n, "examples in "+folder+" that run without Python")
	}
	for _, folder := range []string{"core", "internal/wire", "hostplugin"} {
		row(fmt.Sprintf("%.2f", ratio(files, folder)), "lines of test to a line of code in "+folder)
	}
	return w.Flush()
}

// sources reads the Go and C files that git tracks or would track, but for generated ones and those
// of testdata.
func sources(ctx context.Context) ([]file, error) {
	out, err := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "*.go", "*.c", "*.h").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []file
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, but not from the index yet
		}
		if err != nil {
			return nil, err
		}
		if !generated(text) {
			files = append(files, file{name, text, bytes.Count(text, []byte("\n"))})
		}
	}
	return files, nil
}

func generated(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("package ")) {
			return false
		}
		if bytes.HasPrefix(line, []byte("// Code generated ")) {
			return true
		}
	}
	return false
}

// folders counts the folders with Go, those among them whose code is small, and all lines of code.
func folders(files []file) (all, smallOnes, lines int) {
	code := map[string]int{}
	for _, f := range files {
		folder := path.Dir(f.name)
		switch {
		case f.isGo() && f.isTest():
			code[folder] += 0
		case f.isGo():
			code[folder] += f.lines
		}
		if f.isCode() {
			lines += f.lines
		}
	}
	for _, n := range code {
		if 1 <= n && n <= small {
			smallOnes++
		}
	}
	return len(code), smallOnes, lines
}

// ratio compares the lines of the tests in and below a folder with those of its code.
func ratio(files []file, folder string) float64 {
	var test, code int
	for _, f := range files {
		switch {
		case !f.in(folder) || !f.isGo():
		case f.isTest():
			test += f.lines
		default:
			code += f.lines
		}
	}
	return float64(test) / float64(max(code, 1))
}
