package tensorflow_test

import (
	_ "embed" // scripts
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

//go:embed testdata/setup.py
var setup string

//go:embed testdata/arrays.py
var arraysScript string

// TestArrays compares the view of each kind of array with what TensorFlow says of it.
func TestArrays(t *testing.T) {
	t.Parallel()
	programtest.CheckEach(t, pythons(t), nil, setup+arraysScript, "tensorflow", "arrays", 25)
}
