package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded gives the events of a run of NumPy's tests, without their output.
func recorded(t *testing.T) []event {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "numpy.json"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := parseEvents(text)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// render makes the table of these events under two Pythons, with a gap of each kind.
func render(events []event) *matrix {
	return &matrix{
		platform: "Linux", pythons: []string{"3.8.18", "3.11.7"},
		results: []result{{
			framework: frameworks()[0], cells: cells(events), failed: failed(events),
			gaps: []gap{
				{"1.20.3", "3.11", "No matching distribution found for numpy==1.20.3 (from versions: 1.23.2, …, 2.4.6)"},
				{"1.24.4", "3.11", ""},
				{"2.4.6", "3.8", "No matching distribution found for numpy==2.4.6 (from versions: 1.17.3, …, 1.24.4)"},
			},
		}},
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	m := render(recorded(t))
	if err := m.failure(); err != nil {
		t.Error(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "numpy.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.markdown(); got != string(want) {
		t.Errorf("the table is\n%s", got)
	}
}

// TestFailuresShow turns results of tests into others, which the table must not call passed.
func TestFailuresShow(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"fail", "skip"} {
		for test, shows := range map[string]string{
			"TestQuirks/versions/3.8-old": "| 1.20.3 | **failed: TestQuirks** | no wheel |",
			"TestQuirks":                  "| 1.20.3 | passed: 142 arrays, 5 quirks | no wheel |",
		} {
			events := recorded(t)
			i := slices.IndexFunc(events, func(e event) bool { return e.Action == "pass" && e.Test == test })
			events[i].Action = action
			m := render(events)
			if text := m.markdown(); !strings.Contains(text, shows) {
				t.Errorf("%s of %s: %q is not in\n%s", action, test, shows, text)
			}
			if err := m.failure(); err == nil || !strings.Contains(err.Error(), test) {
				t.Errorf("%s of %s: %v", action, test, err)
			}
		}
	}
	m := render(append(recorded(t), event{Action: "fail"})) // of the package, outside of all tests
	if err := m.failure(); err == nil {
		t.Error("that the package failed is no failure")
	}
}

func TestEventsThatAreNone(t *testing.T) {
	t.Parallel()
	if _, err := parseEvents([]byte(`{"Action":"pass"}` + "\nnot JSON\n")); err == nil {
		t.Error("they are read")
	}
	text, err := json.Marshal(event{Action: "build-output", Output: "it does not compile"})
	if err != nil {
		t.Fatal(err)
	}
	events, err := parseEvents(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := outputs(events, nil); got != "it does not compile" || len(cells(events)) != 0 {
		t.Errorf("%q, %v", got, cells(events))
	}
}
