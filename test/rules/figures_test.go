package rules

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// small is the number of lines up to which a folder's code counts as small.
const small = 60

// mostNames is how many names each of these packages may export. What is added must earn its place.
// 52 of those of hostplugin are for calls of functions, the others for views.
var mostNames = map[string]int{"core": 150, "hostplugin": 114, "cuda": 30, "adapters/kit": 17, "adapters/kit/program": 47}

// A file is one source file that is not generated.
type file struct {
	name  string // from the root of the repository, with slashes
	text  string
	lines int
}

func (f file) isGo() bool   { return path.Ext(f.name) == ".go" }
func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// isCode reports whether the file is of what users get, or of an example.
func (f file) isCode() bool { return !f.isTest() && !strings.HasPrefix(f.name, "test/") }

// in reports whether the file lies in a folder or in one below it.
func (f file) in(folder string) bool { return strings.HasPrefix(f.name, folder+"/") }

// TestFigures prints figures of the source: how many folders, lines and exported names there are, how many
// examples, and how much test there is to the code. (Run make count to see them.) It fails where a package
// exports more names than it may.
func TestFigures(t *testing.T) {
	t.Parallel()
	files := written(t)
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(value any, what string) { _, _ = fmt.Fprintf(w, "%v\t  %s\n", value, what) } // Flush has the error
	folders, smallOnes, lines := folders(files)
	row(folders, "folders with Go")
	row(smallOnes, fmt.Sprintf("folders with 1 to %d lines of Go that is no test", small))
	row(lines, "lines of Go and C without tests and generated code")
	for _, folder := range slices.Sorted(maps.Keys(mostNames)) {
		names := exported(t, files, folder)
		row(len(names), "exported names of "+folder)
		if most := mostNames[folder]; len(names) > most {
			t.Errorf("%s exports %d names; at most %d: %s", folder, len(names), most, strings.Join(names, " "))
		}
	}
	for _, folder := range []string{"core", "cuda", "adapters/kit"} {
		row(examples(t, files, folder), "examples in "+folder+" that run without Python")
	}
	for _, folder := range []string{"core", "internal/wire", "hostplugin"} {
		row(fmt.Sprintf("%.2f", ratio(files, folder)), "lines of test to a line of code in "+folder)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// written is the Go and C that people wrote, without testdata.
func written(t *testing.T) []file {
	t.Helper()
	var files []file
	for _, name := range sources(t, "*.go", "*.c", "*.h") {
		text := read(t, name)
		if !generated(text) && !slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "testdata") {
			files = append(files, file{name, text, strings.Count(text, "\n")})
		}
	}
	return files
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
