package numba_test

import (
	_ "embed" // arrays.py
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

//go:embed testdata/arrays.py
var arraysScript string

// TestArrays compares the view of each kind of array with what Numba says of it.
func TestArrays(t *testing.T) {
	t.Parallel()
	versions, env := pythons(t)
	programtest.CheckEach(t, versions, env, setup+arraysScript, "numba", "arrays", 45)
}
