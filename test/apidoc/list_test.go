package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/golden"
)

const root = "../.."

// TestPackageListIsCurrent holds docs/packages.md to the packages and their comments. With -update it writes the file.
func TestPackageListIsCurrent(t *testing.T) {
	t.Parallel()
	packages, err := find(root)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join(root, "docs/packages.md"), []byte(list(packages)))
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
