package jax_test

import (
	_ "embed" // imports.py
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed testdata/imports.py
var importsScript string

// TestImports makes arrays of a host's memory.
func TestImports(t *testing.T) {
	t.Parallel()
	python := programtest.Newest(t, "jax", "NDBRIDGE_TEST_PYTHON_ALL")
	if out := programtest.NewImports(t).Run(t, python, importsScript, contract.Settings{}); !strings.HasSuffix(out, "done\n") {
		t.Error(out)
	}
}
