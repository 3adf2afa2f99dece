//go:build cuda

package main

import (
	"bytes"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/internal/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExample runs the example on PyCUDA.
func TestExample(t *testing.T) {
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_PYCUDA")
	if python == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_PYCUDA and NDBRIDGE_LIB are not set; run make test")
	}
	t.Setenv("PYTHON", python)
	var out bytes.Buffer
	if err := run(t.Context(), &out, "ndbridge.hcl"); err != nil {
		t.Fatal(err)
	}
	golden.Shown(t, "README.md", "text", out.String())
}
