package rules

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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

// TestSnippetsAreTestedCode holds each Go, HCL and Python snippet of the documentation to code that is
// compiled, parsed or run by a test: it must stand, line by line, in a file of the repository.
func TestSnippetsAreTestedCode(t *testing.T) {
	t.Parallel()
	code := map[string]string{}
	for language, pattern := range map[string]string{"go": "*.go", "hcl": "*.hcl", "python": "*.py"} {
		for _, name := range sources(t, pattern) {
			code[language] += flat(read(t, name))
		}
	}
	seen := map[string]int{}
	for _, name := range sources(t, "*.md") {
		for _, b := range blocks(read(t, name)) {
			text, ok := code[b.language]
			if !ok {
				continue
			}
			seen[b.language]++
			if !strings.Contains(text, flat(strings.TrimRight(b.text, "\n"))) {
				t.Errorf("%s:%d: this %s snippet stands in no file", name, b.line, b.language)
			}
		}
	}
	if len(seen) != len(code) {
		t.Errorf("snippets seen: %v; the README has one of each language", seen)
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

// prose is a text without its blocks of code, where brackets mean something else.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
}

// anchors gives those of a Markdown file's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(prose(text), -1) {
		name := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(heading[1]), "$1")
		name = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(name, "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	for _, named := range regexp.MustCompile(`<a (?:id|name)="([^"]+)">`).FindAllStringSubmatch(text, -1) {
		all[named[1]] = true
	}
	return all
}

// TestLinksAndTargetsExist follows the relative links of the documentation, to the heading that they name, and looks up each
// make target that it names.
func TestLinksAndTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)`)
	target := regexp.MustCompile("(?m)(?:`|^    )make ([a-z][a-z0-9-]*)")
	for _, name := range sources(t, "*.md") {
		text := prose(read(t, name))
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			to := path.Join(path.Dir(name), match[1])
			if match[1] == "" {
				to = name
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: broken link %s", name, match[1])
			} else if match[2] != "" && !anchors(read(t, to))[match[2]] {
				t.Errorf("%s: %s has no heading %s", name, to, match[2])
			}
		}
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", name, match[1])
			}
		}
	}
}

// TestExamplesAndBridgesHaveREADMEs: each example says what it is and how to run it, and the README leads there. Each bridge that is a
// module of its own leads to docs/bridges.md.
func TestExamplesAndBridgesHaveREADMEs(t *testing.T) {
	t.Parallel()
	readmes := map[string]bool{}
	for _, name := range sources(t, "examples/*") {
		readmes[path.Join("examples", strings.Split(name, "/")[1], "README.md")] = true
	}
	tracked := sources(t, "*README.md")
	for name := range readmes {
		if !slices.Contains(tracked, name) {
			t.Errorf("there is no %s", name)
			continue
		}
		text := read(t, name)
		if title := "# " + path.Base(path.Dir(name)) + ": "; !strings.HasPrefix(text, title) {
			t.Errorf("%s does not begin with %q", name, title)
		}
		if !regexp.MustCompile(`(?m)^    make `).MatchString(text) {
			t.Errorf("%s does not say how to run it, from a clone that was not built", name)
		}
		if !strings.Contains(read(t, "README.md"), "]("+name+")") {
			t.Errorf("README.md does not lead to %s", name)
		}
	}
	for _, module := range sources(t, "bridges/*/go.mod") {
		name := path.Join(path.Dir(module), "README.md")
		if !slices.Contains(tracked, name) || !strings.Contains(read(t, name), "](../../docs/bridges.md#") {
			t.Errorf("%s is not there, or does not lead to docs/bridges.md", name)
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
	tests := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	rows := 0
	for line := range strings.Lines(read(t, "docs/lifetime.md")) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		if rows++; rows == 1 {
			continue // the columns' names
		}
		for _, cell := range cells[1:] {
			names := tests.FindAllStringSubmatch(cell, -1)
			if len(names) == 0 {
				t.Errorf("docs/lifetime.md: no test proves %q of %q", cell, cells[0])
			}
			for _, name := range names {
				if !strings.Contains(code.String(), "func "+name[1]+"(") {
					t.Errorf("docs/lifetime.md names %s, which does not exist", name[1])
				}
			}
		}
	}
	if rows < 2 {
		t.Fatal("docs/lifetime.md has no table")
	}
}

// TestEachFolderHasItsLine holds the table of packages in docs/ARCHITECTURE.md to the folders that have Go: each is
// named there once, by its path or by a pattern, and none is that does not exist.
func TestEachFolderHasItsLine(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	lines := map[string]int{} // of each name, how many folders it means
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(line, " | ")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			if _, twice := lines[name[1]]; twice {
				t.Errorf("docs/ARCHITECTURE.md names %s twice", name[1])
			}
			lines[name[1]] = 0
		}
	}
	folders := map[string]bool{"test/cudasim": true} // which has C
	for _, name := range sources(t, "*.go") {
		folders[path.Dir(name)] = !strings.Contains(name, "/testdata/")
	}
	for folder, ours := range folders {
		_, named := lines[folder]
		if named {
			lines[folder]++
		}
		for pattern := range lines {
			if ok, err := path.Match(pattern, folder); ok && err == nil && !named {
				lines[pattern]++
				named = true
			}
		}
		if ours && !named {
			t.Errorf("docs/ARCHITECTURE.md has no line for %s", folder)
		}
	}
	for name, n := range lines {
		if n == 0 {
			t.Errorf("docs/ARCHITECTURE.md names %s, which does not exist", name)
		}
	}
}
