//go:build cuda

package gpu

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestFoundingStreamNoneInDALI shows on DALI itself, an old version and the present one, what it makes of
// an interface whose stream is None: the rest of that founding problem is in test/e2e. DALI wants a
// GPU before it looks at the interface, and each version is there only where it was carried to.
func TestFoundingStreamNoneInDALI(t *testing.T) {
	const taken = "[6291456]"
	ask := func(python, none string) {
		answers := askDALI(t, python)
		row := &report.Row{Table: "DALI and the stream of a CUDA array interface"}
		for _, name := range []string{"version", "None", "1"} {
			row.Set(strings.Replace(name, "version", "DALI", 1), answers[name])
		}
		write(t, row)
		if answers["1"] != taken || !strings.Contains(answers["None"], none) {
			t.Errorf("DALI %s answers stream 1 with %q, and None with %q; want %q and %q",
				answers["version"], answers["1"], answers["None"], taken, none)
		}
	}
	if has(t, "dali") {
		ask(harness.Python(t), taken)
	}
	if old := os.Getenv("NDBRIDGE_TEST_PYTHON_DALI_OLD"); old != "" {
		ask(old, "Error")
	}
}

func askDALI(t *testing.T, python string) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), python, "testdata/programs/dali_stream.py")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	var answers map[string]string
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil {
		t.Fatalf("%q: %v: %s", out, err, &stderr)
	}
	return answers
}
