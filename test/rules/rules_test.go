// Package rules checks what no linter does: where unsafe and cgo may stand, how long files may grow, and
// that the documentation says what the code does.
package rules

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxFileLines = 400

// cgoPackages may import "C"; all else is pure Go.
var cgoPackages = []string{
	"adapters/all/plugin",
	"adapters/kit/entry",
	"adapters/kit/internal/pyvalues/pytests", "adapters/kit/program/programtest/importtests", // a part of tests
	"adapters/kit/py",
	"adapters/kit/py/pytests", // its tests
	"adapters/numpy/plugin",
	"internal/gpu/driver",
	"internal/gpu/driver/testdata/library", // its tests
	"internal/sharedheap",
	"internal/sharedheap/cmalloc", // its tests
}

// root is the repository's folder; tests run in their own.
const root = "../.."

// sources lists the files that git tracks or would track, as slash paths below root.
func sources(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"-C", root, "ls-files", "-co", "--exclude-standard", "--"}, patterns...)
	out, err := exec.CommandContext(t.Context(), "git", args...).Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if _, err := os.Stat(filepath.Join(root, name)); err == nil { // not one deleted but still staged
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no files match %q", patterns)
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func generated(text string) bool {
	return regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`).MatchString(text)
}

func TestUnsafeAndCgoStandWhereTheyMay(t *testing.T) {
	t.Parallel()
	for _, name := range sources(t, "*.go") {
		text := read(t, name)
		if generated(text) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, imported := range file.Imports {
			switch imported.Path.Value {
			case `"unsafe"`:
				base := strings.TrimSuffix(path.Base(name), "_test.go")
				if !strings.HasSuffix(strings.TrimSuffix(base, ".go"), "_unsafe") {
					t.Errorf("%s imports unsafe; only files named *_unsafe.go may", name)
				}
			case `"C"`:
				if !slices.Contains(cgoPackages, path.Dir(name)) {
					t.Errorf("%s uses cgo; only these packages may: %v", name, cgoPackages)
				}
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range sources(t, "*.go") {
		text := read(t, name)
		if generated(text) {
			continue
		}
		lines := strings.Count(text, "\n")
		if lines > maxFileLines {
			t.Errorf("%s has %d lines; split it by noun, at most %d", name, lines, maxFileLines)
		}
	}
}

func TestNothingIsLeftOpenOrTiedToAMachine(t *testing.T) {
	t.Parallel()
	patterns := map[string]*regexp.Regexp{
		"a path of one machine": regexp.MustCompile(`(^|[^a-z.])/(work|root|home/[a-z]+)/`),
		"something left open":   regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`),
	}
	for _, name := range sources(t) {
		if name == "test/rules/rules_test.go" || strings.HasSuffix(name, ".png") || strings.Contains(name, "/web/others/") {
			continue
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			for what, pattern := range patterns {
				if pattern.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", name, i+1, what, strings.TrimSpace(line))
				}
			}
		}
	}
}
