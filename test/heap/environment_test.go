package heap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestChildrenRunWithout holds that a Python program takes the library and its settings out of its
// environment, so that what it starts runs without, and leaves everything else there.
func TestChildrenRunWithout(t *testing.T) {
	t.Parallel()
	lib := library(t)
	other := buildOther(t)
	for _, c := range []struct {
		name, preload string
		want          string // LD_PRELOAD as children see it
	}{
		{"alone", lib, ""},
		{"before another", lib + ":" + other, other},
		{"by spaces", lib + " " + other, other},
		{"twice", lib + "::" + lib + ":" + other + ":", other},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := command(t, harness.Python(t), c.preload, []string{every, "NDBRIDGE_HEAP_THRESHOLD=65536", promotes, "KEPT=1"}, []string{"-c", `
import ctypes, os, subprocess
assert hasattr(ctypes.CDLL(None), "ndheap_abi"), "not preloaded"
names = "LD_PRELOAD", "NDBRIDGE_HEAP_LIBRARIES", "NDBRIDGE_HEAP_THRESHOLD", "NDBRIDGE_HEAP_PROMOTE", "KEPT"
print([os.environ.get(n) for n in names])
print(subprocess.run(["sh", "-c", 'echo "$LD_PRELOAD|$NDBRIDGE_HEAP_LIBRARIES|$NDBRIDGE_HEAP_THRESHOLD|$NDBRIDGE_HEAP_PROMOTE|$KEPT"; cat /proc/self/maps'],
                     stdout=subprocess.PIPE, text=True).stdout)
`})
			out := run(t, program)
			inside := "None"
			if c.want != "" {
				inside = "'" + c.want + "'"
			}
			if want := "[" + inside + ", None, None, None, '1']\n" + c.want + "||||1\n"; !strings.HasPrefix(out, want) {
				t.Errorf("the environment is\n%.300s\nwant\n%s", out, want)
			}
			if strings.Contains(out, filepath.Base(lib)) {
				t.Error("a child has the library mapped")
			}
		})
	}
}

// buildOther builds a preload library that does nothing.
func buildOther(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "other.c")
	if err := os.WriteFile(file, []byte("int other;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib, err := compile("other.so", "-shared", "-fPIC", file)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// TestLaunchersPassItOn starts Python by way of programs that are not Python.
func TestLaunchersPassItOn(t *testing.T) {
	t.Parallel()
	const script = `import ctypes, os; print(hasattr(ctypes.CDLL(None), "ndheap_abi"), os.environ.get("LD_PRELOAD"))`
	python := harness.Python(t)
	for name, args := range map[string][]string{
		"shell": {"sh", "-c", `exec "$0" -c "$1"`, python, script},
		"child": {"sh", "-c", `"$0" -c "$1"; exit $?`, python, script},
		"env":   {"env", python, "-c", script},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := command(t, args[0], library(t), nil, args[1:])
			if out := run(t, c); out != "True None\n" {
				t.Errorf("it printed %q", out)
			}
		})
	}
}
