package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// testResult is how one test went.
type testResult struct {
	Name   string `json:"name"`
	Result string `json:"result"` // "PASS", "FAIL", "SKIP", or "UNFINISHED"
	Took   string `json:"took"`
	Output string `json:"output,omitempty"` // of a test that did not pass
}

var (
	began = regexp.MustCompile(`^=== (?:RUN|CONT|NAME)\s+(\S*)`)
	ended = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \((.*)\)`)
)

// parseTests reads what a test binary prints with -test.v.
func parseTests(text string, opts options) []testResult {
	var tests []testResult
	index := map[string]int{}
	output := map[string][]string{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := ended.FindStringSubmatch(line); m != nil {
			if i, ok := index[m[2]]; ok {
				tests[i].Result, tests[i].Took = m[1], m[3]
			}
			continue
		}
		if m := began.FindStringSubmatch(line); m != nil {
			current = m[1]
			if _, ok := index[current]; !ok && current != "" {
				index[current] = len(tests)
				tests = append(tests, testResult{Name: current, Result: "UNFINISHED"})
			}
			continue
		}
		if !strings.Contains(line, "level=DEBUG") {
			output[current] = append(output[current], line)
		}
	}
	for i := range tests {
		if t := &tests[i]; t.Result != "PASS" {
			t.Output = shorten(output[t.Name], opts)
		}
	}
	return tests
}

// shorten keeps of an output what a reader needs, and takes out where things lay on this machine.
func shorten(lines []string, opts options) string {
	const first, last = 12, 12
	if len(lines) > first+last {
		lines = append(append(lines[:first:first], "..."), lines[len(lines)-last:]...)
	}
	return places(opts).Replace(strings.Join(lines, "\n"))
}

// places replaces folders of this machine by what they are.
func places(opts options) *strings.Replacer {
	pairs := []string{opts.bundle, "BUNDLE", opts.out, "OUT"}
	if strings.Contains(opts.python, "/") {
		pairs = append(pairs, filepath.Dir(filepath.Dir(opts.python)), "PYTHON")
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		pairs = append(pairs, home, "HOME")
	}
	return strings.NewReplacer(append(pairs, os.TempDir(), "TMP")...)
}
