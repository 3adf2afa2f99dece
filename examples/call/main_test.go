package main

import (
	"log"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/golden"
)

func TestMain(m *testing.M) {
	if os.Getenv("NDBRIDGE_TEST_PYTHON") == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		log.Fatal("NDBRIDGE_TEST_PYTHON and NDBRIDGE_LIB are not set; run make test")
	}
	goleak.VerifyTestMain(m)
}

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, hostplugin.Program{Script: "model.py", Python: os.Getenv("NDBRIDGE_TEST_PYTHON")}); err != nil {
		t.Fatal(err)
	}
	golden.Shown(t, "README.md", "text", out.String())
}
