package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGeneratedFilesAreCurrent holds that what is derived from the tables follows them.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is older than the tables that it is made from; run make generate", name)
		}
	}
}
