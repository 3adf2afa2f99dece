package pycuda_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have PyCUDA, on a GPU or on the simulated driver.
func pythons(t *testing.T) (byName map[string]string, env []string) {
	t.Helper()
	return programtest.GPUs(t, "pycuda", "NDBRIDGE_TEST_PYTHON_PYCUDA")
}
