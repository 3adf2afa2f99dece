package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWatchDoubtsASearchThatMissesWhatIsThere has a search of a busy program miss the variables of main, and find what they hold by other names.
func TestWatchDoubtsASearchThatMissesWhatIsThere(t *testing.T) {
	t.Parallel()
	w, all := newWatcher(newEnviron(nil, nil)), wanted{}
	lasting := map[string]bool{"main().model.w": true, "main().x": true, "step().x": false}
	w.found[all] = maps.Clone(lasting)
	whole := []named{{"main().model.w", []string{"forward().self.w"}}, {"main().x", nil}}
	part := []named{{"forward().self.w", nil}, {"main().x", nil}}
	doubts := func(found []named, seen extent) bool { return w.doubts(all, found, seen, lasting) }
	if doubts(whole, everything) || doubts(part, something) {
		t.Error("it doubts a search that has found what lasts, or may not")
	}
	for range 2 {
		for range mostDoubted {
			if !doubts(part, everything) {
				t.Error("it does not doubt a search that has missed an array")
			}
		}
		for range mostDoubted {
			if doubts(part, everything) {
				t.Error("it doubts more searches in a row than it should")
			}
		}
		if doubts(whole, everything) {
			t.Error("it doubts a search that has found all again")
		}
	}
	if !doubts(nil, nothing) {
		t.Error("it does not doubt a search that failed")
	}
	if w.ended = true; doubts(part, everything) {
		t.Error("it doubts a search after the script's end")
	}
}

// TestWatchConfirmsWhatIsNew has arrays come, and a variable of a function that was found once.
func TestWatchConfirmsWhatIsNew(t *testing.T) {
	t.Parallel()
	w, all := newWatcher(newEnviron(nil, nil)), wanted{}
	lasting := map[string]bool{"x": true}
	search := func(want string, soon, doubted bool, names ...string) {
		t.Helper()
		var got []string
		var list []named
		for _, name := range names {
			list = append(list, named{name: name})
		}
		kept, again := w.confirmed(all, list, lasting, doubted)
		for _, a := range kept {
			got = append(got, a.name)
		}
		if strings.Join(got, " ") != want || again != soon {
			t.Errorf("%v: %v, %v, want %s, %v", names, got, again, want, soon)
		}
	}
	search("x y", false, false, "x", "y") // the first search
	w.found[all] = map[string]bool{"x": true}
	search("x", true, false, "x", "f().self")
	search("x", true, false, "x", "y")
	search("x", true, true, "x", "y")
	search("x y", false, false, "x", "y")
	search("x", false, false, "x", "f().self")
	if kept, _ := w.confirmed(all, []named{{"z", []string{"x"}}}, lasting, false); len(kept) != 1 {
		t.Error("another name of what is watched was left out")
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
