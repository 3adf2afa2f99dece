package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core/contract"
)

// framework is one that there is an adapter for.
type framework struct {
	name     string
	packages []string // those that it is installed by: the first has its version
}

func frameworks() []framework {
	return []framework{
		{"numpy", []string{"numpy"}},
		{"torch", []string{"torch"}},
		{"jax", []string{"jax", "jaxlib"}},
		{"warp", []string{"warp-lang"}},
		{"dali", []string{"nvidia-dali-cuda120", "nvidia-dali-cuda130"}},
		{"tensorflow", []string{"tensorflow_cpu"}},
		{"pyarrow", []string{"pyarrow"}},
	}
}

// choose gives the frameworks of these names.
func choose(names string) ([]framework, error) {
	if names == "" {
		return frameworks(), nil
	}
	var chosen []framework
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(frameworks(), func(f framework) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no adapter for %q", name)
		}
		chosen = append(chosen, frameworks()[i])
	}
	return chosen, nil
}

// A list is a file of pinned packages.
type list struct {
	name    string
	pythons []string // "3.11": the Pythons that the matrix makes an environment for
	pins    [][2]string
}

// readLists reads all lists of a folder. The line "# matrix 3.11 3.12" names a list's Pythons.
func readLists(folder string) ([]list, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no lists of packages", folder)
	}
	lists := make([]list, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lists = append(lists, parseList(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text)))
	}
	return lists, nil
}

func parseList(name, text string) list {
	l := list{name: name}
	for line := range strings.Lines(text) {
		if pythons, ok := strings.CutPrefix(line, "# matrix "); ok {
			l.pythons = strings.Fields(pythons)
		}
		pin, _, _ := strings.Cut(line, ";") // the condition
		if pkg, version, ok := strings.Cut(strings.TrimSpace(pin), "=="); ok && !strings.HasPrefix(pkg, "#") {
			l.pins = append(l.pins, [2]string{pkg, version})
		}
	}
	return l
}

// of reports whether a list is for the tests of a framework: named after it, or for all.
func (l *list) of(f framework) bool {
	if strings.HasPrefix(l.name, f.name+"-") {
		return true
	}
	return !strings.Contains(l.name, "-") && f.name != "numpy" && len(l.requirements(f, "")) > 0
}

// requirements gives the list's pins of the framework's packages, if it pins that version, or any if it
// is "".
func (l *list) requirements(f framework, version string) []string {
	var pins []string
	has := version == ""
	for _, pin := range l.pins {
		if !slices.Contains(f.packages, pin[0]) {
			continue
		}
		if same(pin[1], version) {
			has = true
		} else if version != "" && pin[0] == f.packages[0] {
			continue // for another Python
		}
		pins = append(pins, pin[0]+"=="+pin[1])
	}
	if !has {
		return nil
	}
	return pins
}

// same compares versions, but for their local parts.
func same(a, b string) bool {
	x, errX := contract.ParseVersion(a)
	y, errY := contract.ParseVersion(b)
	return errX == nil && errY == nil && x.Compare(y) == 0
}
