package jax_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have JAX.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"usual": usual(t)}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_JAX")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return all
}

// usual gives the interpreter of the tests that need no special version.
func usual(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("imports jax, which takes long")
	}
	return programtest.Variable(t, "NDBRIDGE_TEST_PYTHON_ALL")
}

// start runs a script with the usual interpreter and waits for its end.
func start(t *testing.T, script string, opts programtest.Options) *programtest.Program {
	t.Helper()
	opts.Python = usual(t)
	p := programtest.Start(t, script, opts)
	p.Finish(t)
	return p
}
