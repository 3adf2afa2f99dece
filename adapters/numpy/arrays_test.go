package numpy_test

import (
	_ "embed" // arrays.py
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/arrays.py
var arraysScript string

// pythons lists every interpreter of the matrix, and the one that has ml_dtypes.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, python := range append(programtest.Pythons(t), programtest.Variable(t, "NDBRIDGE_TEST_PYTHON")) {
		all[programtest.Environment(python)] = python
	}
	return all
}

// TestArrays compares the view of each kind of array with what NumPy says of it.
func TestArrays(t *testing.T) {
	t.Parallel()
	programtest.CheckEach(t, pythons(t), nil, arraysScript, "numpy", "arrays", 140)
}
