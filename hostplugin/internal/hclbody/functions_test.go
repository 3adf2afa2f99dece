package hclbody

import (
	"os"
	"strings"
	"testing"
)

// TestReferenceListsTheFunctions holds docs/configuration.md to the functions that a file may call.
func TestReferenceListsTheFunctions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Functions\n")
	for name := range evalContext().Functions {
		if !strings.Contains(section, "`"+name+"(") {
			t.Errorf("docs/configuration.md does not describe the function %s", name)
		}
	}
}
