package torch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

// pythons lists the interpreters that have PyTorch.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"newest": programtest.Variable(t, "NDBRIDGE_TEST_PYTHON_ALL")}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_TORCH")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return all
}
