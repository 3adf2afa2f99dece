package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasurements asks a server of the environment with pyarrow for arrays of several batches, and for one
// that it cannot have.
func TestMeasurements(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_MORE")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_MORE is not set; run make test")
	}
	var out strings.Builder
	in := strings.NewReader(`{"bytes":4096,"warm":1,"count":3}` + "\n" + `{"bytes":10000000,"warm":0,"count":1}` + "\n" + `{"bytes":-4,"count":1}`)
	if err := serve(t.Context(), python, filepath.Join(t.TempDir(), "flight"), in, &out); err != nil {
		t.Fatalf("%v; it wrote:\n%s", err, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{`{"versions":{"pyarrow":"`, `{"took":[`, `{"took":[`, `{"took":null,"error":"`} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d does not begin with %s:\n%s", i, want, out.String())
		}
	}
	if n := strings.Count(lines[1], ","); n != 2 {
		t.Errorf("%d durations, expected 3: %s", n+1, lines[1])
	}
}
