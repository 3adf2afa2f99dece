package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestInspectOpens has the page show the tree of a program that is given in each of the ways to give one.
func TestInspectOpens(t *testing.T) { //nolint:paralleltest // it sets the environment
	_, socket := listening(t)
	pythons := filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS"))
	newest := slices.IndexFunc(pythons, func(p string) bool { return strings.Contains(p, "/3.14-") })
	if newest < 0 {
		t.Fatal("NDBRIDGE_TEST_PYTHONS has no Python 3.14; run make test")
	}
	unprepared := exec.Command(pythons[newest], "-c", "import numpy as np, sys, threading\nz = np.ones(3)\n"+ //nolint:noctx // it ends by itself when the test does
		"print('runs', flush=True)\nreading = threading.Thread(target=sys.stdin.read)\nreading.start()\nwhile reading.is_alive(): reading.join(0.01)")
	starts(t, unprepared)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	config := file(t, t.TempDir(), "some.hcl", fmt.Sprintf(`
program "other" { script = "other.py" }
program "inspected" {
  python = %q
  script = %q
}
`, python(t), filepath.Join(here, "testdata/inspected.py")))
	for _, c := range []struct { //nolint:paralleltest // as above
		name, program, array string
		args                 []string
	}{
		{"a configuration", "inspected", `parts["tail"]`, []string{"-c", config, "--program", "inspected"}},
		{"a module", "testdata.inspected", `parts["tail"]`, []string{"--module", "testdata.inspected", "--python", python(t)}},
		{"a process", strconv.Itoa(unprepared.Process.Pid), "z", []string{"--attach", strconv.Itoa(unprepared.Process.Pid)}},
		{"a name", "waiter", "main().y", []string{"--attach", "waiter"}},
		{"a socket", programName(socket, ""), "main().y", []string{"--attach", socket}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := inspectWith(t, c.args...)
			conn := i.page(t, fmt.Sprintf(`{"look": {"name": %q, "auto": true, "width": 8, "height": 8}}`, c.array))
			program, listed, figures := "", false, false
			until(t, conn, func(m map[string]any) bool {
				switch m["topic"] {
				case "program":
					program, _ = m["name"].(string)
				case "tree":
					entries, _ := m["entries"].([]any)
					listed = slices.ContainsFunc(entries, func(e any) bool { return e.(map[string]any)["name"] == c.array }) //nolint:errcheck,forcetypeassert // the test would fail
				case "array":
					figures = m["name"] == c.array && m["figures"] != nil
				}
				return listed && figures
			})
			if program != c.program {
				t.Errorf("the page is of %q, want %q", program, c.program)
			}
			_ = conn.CloseNow() // the server waits for pages that it closes
			i.end(t)
		})
	}
}
