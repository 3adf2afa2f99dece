package pyarrow_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have PyArrow.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	return programtest.Versions(t, "pyarrow", "NDBRIDGE_TEST_PYTHON_MORE")
}

func newest(t *testing.T) string {
	t.Helper()
	return programtest.Newest(t, "pyarrow", "NDBRIDGE_TEST_PYTHON_MORE")
}
