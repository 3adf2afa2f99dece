package dali_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have DALI.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"newest": newest(t)}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_DALI")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return all
}

func newest(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an environment with dali, which is large")
	}
	return programtest.Variable(t, "NDBRIDGE_TEST_PYTHON_MORE")
}
