package pyarrow_test

import (
	_ "embed" // scripts
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

//go:embed testdata/setup.py
var setup string

//go:embed testdata/arrays.py
var arraysScript string

// TestArrays compares the view of each kind of array with what PyArrow says of it, for arrays in its own
// pool of memory and for those of malloc, which are shared.
func TestArrays(t *testing.T) {
	t.Parallel()
	for pool, env := range map[string][]string{"own": nil, "system": {"ARROW_DEFAULT_MEMORY_POOL=system"}} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			programtest.CheckEach(t, pythons(t), env, setup+arraysScript, "pyarrow", "arrays", 25)
		})
	}
}
