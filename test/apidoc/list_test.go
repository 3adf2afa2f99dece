package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/packages.md anew")

const root = "../.."

// TestPackageListIsCurrent holds docs/packages.md to the packages and their comments. With -update it writes the file.
func TestPackageListIsCurrent(t *testing.T) {
	t.Parallel()
	packages, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	want, file := list(packages), filepath.Join(root, "docs/packages.md")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is older than the comments that it is made from; run make generate", file)
	}
}

// TestPagesHaveWhatIsExported looks for a type, a method, a constant and links on the pages.
func TestPagesHaveWhatIsExported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writePages(root, dir); err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string][]string{
		"core.md":          {"### type View {#View}", "func (v *View) Close() error", "{#View.Close}", `<span id="ErrNotFound">`},
		"stats.md":         {"func Of(ctx context.Context", "[core.View](core.md#View)"},
		"bridges/gonum.md": {"[core.View.Acquire](../core.md#View.Acquire)"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wanted {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "internal")); err == nil {
		t.Error("there are pages of internal packages")
	}
}
