package reference

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPageIsCurrent holds that the page follows what it is made from.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("../../..", Page))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is older than what it is made from; run make generate", Page)
	}
}

// TestAttributesAreDescribed holds that nothing is left empty but the default of what has none.
func TestAttributesAreDescribed(t *testing.T) {
	t.Parallel()
	for _, b := range Blocks() {
		for _, a := range b.Attributes {
			if a.Name == "" || a.Type == "" || a.Text == "" {
				t.Errorf("%s: %+v is not described", b.Name, a)
			}
		}
	}
}
