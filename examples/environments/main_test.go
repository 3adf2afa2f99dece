package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("test-short has one environment")
	}
	for _, name := range []string{"NDBRIDGE_LIB", "NDBRIDGE_TEST_PYTHONS", "NDBRIDGE_TEST_PYTHON_ALL"} {
		if os.Getenv(name) == "" {
			t.Fatal(name + " is not set; run make test")
		}
	}
	t.Setenv("PYTHON_NUMPY", filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS"))[0]) // the oldest
	t.Setenv("PYTHON_TORCH", os.Getenv("NDBRIDGE_TEST_PYTHON_ALL"))
	var out strings.Builder
	if err := run(t.Context(), &out, 3); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^instrument: 1\.\S+\nmodel: 2\.\S+\nmeasurement 0: 64 tones, all are right\nmeasurement 1: 64 tones, all are right\nmeasurement 2: 64 tones, all are right\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("it prints\n%s", out.String())
	}
}
