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
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, arraysScript, programtest.Options{Python: python})
			p.Finish(t)
			programtest.CheckReport(t, p, "jax", "arrays", 70)
		})
	}
}
