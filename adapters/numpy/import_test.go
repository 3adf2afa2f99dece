package numpy_test

import (
	_ "embed" // imports.py
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
)

//go:embed testdata/imports.py
var importsScript string

// TestImports makes arrays in a host's memory.
func TestImports(t *testing.T) {
	t.Parallel()
	lib := programtest.NewImports(t)
	for name, python := range pythons(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := lib.Run(t, python, importsScript, contract.Settings{}); !strings.HasSuffix(out, "done\n") {
				t.Error(out)
			}
		})
	}
}
