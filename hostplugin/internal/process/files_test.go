package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPluginsAreFound holds where plugins are found, and which others are there.
func TestPluginsAreFound(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(first, "ndbridge-numpy.so"), filepath.Join(second, "ndbridge-numpy.so"), filepath.Join(second, "ndbridge-own")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(first, "ndbridge-own"), 0o700); err != nil { // no plugin
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(first, "[odd"), first, second}
	if file, _ := findIn("numpy", ".so", dirs); file != filepath.Join(first, "ndbridge-numpy.so") {
		t.Errorf("numpy is %q", file)
	}
	if file, _ := findIn("own", "", dirs); file != filepath.Join(second, "ndbridge-own") {
		t.Errorf("own is %q", file)
	}
	if file, present := findIn("torch", ".so", dirs); file != "" || !slices.Equal(present, []string{"numpy", "numpy"}) {
		t.Errorf("torch is %q, there are %v", file, present)
	}
}
