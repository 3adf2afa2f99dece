package hostplugin

import (
	"os"
	"strings"
	"testing"
)

// TestReferenceListsTheFunctions holds docs/hcl.md to the functions that a file may call.
func TestReferenceListsTheFunctions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/hcl.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Functions\n")
	for name := range evalContext().Functions {
		if !strings.Contains(section, "`"+name+"(") {
			t.Errorf("docs/hcl.md does not describe the function %s", name)
		}
	}
}
