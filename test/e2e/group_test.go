package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestGroupNamesEachArrayOnce: a name occurs once in a group, however it is spelt.
func TestGroupNamesEachArrayOnce(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import numpy as np\nd = {'x': np.zeros(3), 7: np.ones(3)}\nimport remote\nremote.serve()\n", harness.Options{})
	for _, names := range [][]string{{"a", "b", "a"}, {`d["x"]`, `d['x']`}, {`d["x"]`, `d[ '\x78' ]`}, {"d[7]", "d[ 007 ]"}, {"1x", "1x"}} {
		_, err := run.Group(names...)
		want := "group program/" + names[len(names)-1] + ": "
		if !errors.Is(err, core.ErrConfig) || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "the name is there twice") {
			t.Errorf("Group(%q): %v", names, err)
		}
	}
	g, err := run.Group(`d['x']`, "d[7]", "d.x", `d["7"]`)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	g, err = run.Group(`d['x']`, "d[ 007 ]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Refresh(t.Context()); err != nil || first(t, g.View(`d['x']`)) != 0 || first(t, g.View("d[ 007 ]")) != 1 {
		t.Errorf("names as they were given: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	run.NoLeases(t)
}
