package gridlib_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// library is the plugin file, built as its users build it.
var library string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gridlib")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	library = filepath.Join(dir, "gridlib.so")
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build makes the plugin file, and puts the shared heap beside it.
func build(dir string) error {
	lib := os.Getenv("NDBRIDGE_LIB")
	if lib == "" {
		return errors.New("NDBRIDGE_LIB is not set; run make test")
	}
	heap, err := os.ReadFile(filepath.Join(lib, "libndbridge-heap.so"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "libndbridge-heap.so"), heap, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(),
		"go", "build", "-trimpath", "-buildmode=c-shared", "-o", filepath.Join(dir, "gridlib.so"), "./plugin")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
