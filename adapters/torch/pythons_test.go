package torch_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

// newest gives the interpreter with the newest PyTorch.
func newest(t *testing.T) string {
	t.Helper()
	return programtest.Newest(t, "torch", "NDBRIDGE_TEST_PYTHON_ALL")
}

// pythons lists the interpreters that have PyTorch: the newest, and those of the matrix, if it is run.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	return programtest.Versions(t, "torch", "NDBRIDGE_TEST_PYTHON_ALL")
}
