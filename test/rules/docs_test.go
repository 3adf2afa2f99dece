package rules

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// block is one fenced block of a Markdown file.
type block struct {
	language string
	line     int
	text     string
}

func blocks(text string) []block {
	var all []block
	var current *block
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && current == nil:
			current = &block{language: strings.Trim(strings.TrimSpace(line), "`"), line: i + 1}
		case fence:
			all = append(all, *current)
			current = nil
		case current != nil:
			current.text += line + "\n"
		}
	}
	return all
}

// flat makes text comparable whatever its indentation.
func flat(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// TestSnippetsAreCompiledCode holds each Go snippet of the documentation to code that is compiled
// and tested: it must stand, line by line, in a Go file of the repository.
func TestSnippetsAreCompiledCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, name := range sources(t, "*.go") {
		code.WriteString(flat(read(t, name)))
	}
	snippets := 0
	for _, name := range sources(t, "*.md") {
		for _, b := range blocks(read(t, name)) {
			if b.language != "go" {
				continue
			}
			snippets++
			if !strings.Contains(code.String(), flat(strings.TrimRight(b.text, "\n"))) {
				t.Errorf("%s:%d: this Go snippet stands in no Go file", name, b.line)
			}
		}
	}
	if snippets == 0 {
		t.Error("no Go snippet found: the README has at least one")
	}
}

// TestConfigurationSnippetsAreValid parses each HCL snippet as a host would.
func TestConfigurationSnippetsAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range sources(t, "*.md") {
		for _, b := range blocks(read(t, name)) {
			if b.language != "hcl" {
				continue
			}
			if _, err := hostplugin.Parse(path.Base(name), []byte(b.text)); err != nil {
				t.Errorf("%s:%d: %v", name, b.line, err)
			}
		}
	}
}

// TestLinksAndTargetsExist follows the relative links of the documentation, and looks up each make
// target that it names.
func TestLinksAndTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	target := regexp.MustCompile("`make ([a-z][a-z-]*)")
	for _, name := range sources(t, "*.md") {
		text := read(t, name)
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), match[1])); err != nil {
				t.Errorf("%s: broken link %s", name, match[1])
			}
		}
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", name, match[1])
			}
		}
	}
}

// TestLifetimeTableNamesTests holds docs/lifetime.md to its word: each cell is proven by a test.
func TestLifetimeTableNamesTests(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, name := range sources(t, "*_test.go") {
		code.WriteString(read(t, name))
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(read(t, "docs/lifetime.md"), -1)
	if len(names) == 0 {
		t.Fatal("docs/lifetime.md names no test")
	}
	for _, match := range names {
		if !strings.Contains(code.String(), "func "+match[1]+"(") {
			t.Errorf("docs/lifetime.md names %s, which does not exist", match[1])
		}
	}
}
