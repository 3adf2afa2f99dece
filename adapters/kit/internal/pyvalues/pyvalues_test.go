package pyvalues_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// library is the shared library that the tests load into an interpreter.
var library string

func TestMain(m *testing.M) { os.Exit(bootstraptest.RunWithLibrary(m, &library)) }

// TestInside runs each of the scripts in each interpreter. What a script finds wrong, it raises.
func TestInside(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/test_*.py")
	if err != nil || len(scripts) < 5 {
		t.Fatal(scripts, err)
	}
	for version, python := range bootstraptest.Interpreters(t) {
		for _, script := range scripts {
			t.Run(version+"/"+strings.TrimSuffix(filepath.Base(script), ".py"), func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), python, "-X", "faulthandler", script)
				cmd.Env = append(os.Environ(), "PYVALUES="+library, "PYTHONDONTWRITEBYTECODE=1")
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.HasSuffix(string(out), "done\n") {
					t.Errorf("%v\n%s", err, out)
				}
				t.Logf("%s", out)
			})
		}
	}
}
