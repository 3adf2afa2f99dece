package checks

import (
	"os"
	"testing"
)

// TestPyCUDA runs the real PyCUDA on the simulated driver.
func TestPyCUDA(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_PYCUDA")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_PYCUDA names no Python with PyCUDA; `make test` sets it")
	}
	p := build(t)
	p.path = python
	if out, err := p.command(t, "testdata/pycuda_check.py").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
