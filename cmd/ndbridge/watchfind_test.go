package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWatchConfirmsVariablesOfCalls finds such as are there once, and such as stay.
func TestWatchConfirmsVariablesOfCalls(t *testing.T) {
	t.Parallel()
	w, all := newWatcher(newEnviron(nil, nil)), wanted{}
	watched := map[string]bool{"main().w": true}
	for _, search := range []struct {
		found, want string
		again       bool
	}{
		{"x main().w step().x main().m", "x main().w", true},
		{"x main().w main().m step().y", "x main().w main().m", true},
		{"x main().w step().x", "x main().w", false},
		{"x step().y", "x", false},
		{"x step().y", "x step().y", false},
	} {
		var list []named
		var got []string
		for name := range strings.FieldsSeq(search.found) {
			list = append(list, named{name: name})
		}
		kept, again := w.confirmed(all, list, watched)
		for _, a := range kept {
			got = append(got, a.name)
		}
		if strings.Join(got, " ") != search.want || again != search.again {
			t.Errorf("of %s it watches %q, and searches again: %v; want %s, %v", search.found, got, again, search.want, search.again)
		}
	}
}

// TestWatchKeepsNamesThatLast has an array that is watched found under a better name.
func TestWatchKeepsNamesThatLast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		lasting map[string]bool
		want    string
	}{{map[string]bool{"model.part.w": true}, "model.part.w"}, {map[string]bool{"f().w": false}, "w"}, {map[string]bool{"w": true, "f().w": true}, "w"}} {
		a := named{"w", []string{"f().w", "model.part.w"}}
		a.rename(tt.lasting)
		all := append(slices.Clone(a.also), a.name)
		slices.Sort(all)
		if a.name != tt.want || strings.Join(all, " ") != "f().w model.part.w w" {
			t.Errorf("%v: %+v", tt.lasting, a)
		}
	}
}

// TestWatchGivesAnArrayOneName watches a dict that gets a global name while a function goes on to be called with it.
func TestWatchGivesAnArrayOneName(t *testing.T) {
	t.Parallel()
	script := file(t, t.TempDir(), "names.py", "import time\nimport numpy as np\nparts, n = {'first': np.zeros(1 << 16)}, np.zeros(1)\ndef function(array): time.sleep(0.02)\n"+
		"for i in range(600):\n    function(parts['first'])\n    if i == 30: best = parts['first']\n    if i == 60: best[7] = np.nan\n    n += 1\n")
	r := command(t, "watch", "--script", script, "--python", python(t), "--interval", "50ms", "--budget", "50", "--alarm", "nan", "--alarm", "n: max>100", "--rounds", "100")
	alarms := regexp.MustCompile(`alarm: (.*): nan: `).FindAllStringSubmatch(r.stdout, -1)
	if len(alarms) != 1 || alarms[0][1] != `parts["first"]` {
		t.Errorf("status %d, alarms %q\n%s", r.status, alarms, r.stderr)
	}
}
