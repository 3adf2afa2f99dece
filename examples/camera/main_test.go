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
	if err := run(t.Context(), &out, hostplugin.Program{Script: "camera.py", Python: os.Getenv("NDBRIDGE_TEST_PYTHON")}, 10); err != nil {
		t.Fatal(err)
	}
	if want := "10 frames: 20 balls where they are, 0 elsewhere\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}
