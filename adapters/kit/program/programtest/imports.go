package programtest

import (
	_ "embed" // imports.py
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed imports.py
var importsPrelude string

// Imports is a library that makes arrays in a host's memory, without a host. Scripts that it runs see what imports.py
// defines.
type Imports struct{ file string }

// NewImports builds the library.
func NewImports(tb testing.TB) Imports {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "importtests.so")
	const source = "github.com/ndbridge/ndbridge/adapters/kit/program/programtest/importtests"
	// As make builds the plugin, so that most is compiled already.
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-buildmode=c-shared", "-o", file, source)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return Imports{file}
}

// Try runs a script, and gives what it wrote.
func (i Imports) Try(tb testing.TB, python, script string, settings contract.Settings) (string, error) {
	tb.Helper()
	text, err := json.Marshal(settings)
	check(tb, err)
	cmd := exec.CommandContext(tb.Context(), python, "-X", "faulthandler", "-c", importsPrelude+script)
	cmd.Env = append(os.Environ(), "IMPORTTESTS="+i.file, "IMPORTTESTS_SETTINGS="+string(text), "JAX_PLATFORMS=cpu")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Run is Try for scripts that end well.
func (i Imports) Run(tb testing.TB, python, script string, settings contract.Settings) string {
	tb.Helper()
	out, err := i.Try(tb, python, script, settings)
	if err != nil {
		tb.Fatalf("%s: %v\n%s", python, err, out)
	}
	return out
}
