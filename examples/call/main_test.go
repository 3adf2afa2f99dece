package main

import (
	"log"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/hostplugin"
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
	const want = "[[2 1] [2 1]] -1\n10\n10\n[0 0 2 2]\n3\n2\n1\n"
	if out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}
