package jax_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have JAX.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	return programtest.Versions(t, "jax", "NDBRIDGE_TEST_PYTHON_ALL")
}

// usual gives the interpreter of the tests that need no special version.
func usual(t *testing.T) string {
	t.Helper()
	return programtest.Newest(t, "jax", "NDBRIDGE_TEST_PYTHON_ALL")
}

// start runs a script with the usual interpreter and waits for its end.
func start(t *testing.T, script string) *programtest.Program {
	t.Helper()
	p := programtest.Start(t, script, programtest.Options{Python: usual(t)})
	p.Finish(t)
	return p
}
