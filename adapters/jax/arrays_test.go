package jax_test

import (
	_ "embed" // arrays.py
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

//go:embed testdata/arrays.py
var arraysScript string

// TestArrays compares the view of each kind of array with what JAX says of it.
func TestArrays(t *testing.T) {
	t.Parallel()
	programtest.CheckEach(t, pythons(t), nil, arraysScript, "jax", "arrays", 70)
}
