package torch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

// newest gives the interpreter with the newest PyTorch.
func newest(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("imports torch, which takes long")
	}
	return programtest.Variable(t, "NDBRIDGE_TEST_PYTHON_ALL")
}

// pythons lists the interpreters that have PyTorch: the newest, and those of the matrix, if it is run.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"newest": newest(t)}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_TORCH")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return all
}
