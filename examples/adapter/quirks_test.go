package gridlib_test

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"

	gridlib "example.com/gridlib-adapter"
)

// quirks is the table with its witnesses, for the gridlib of a folder.
func quirks(folder string) *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "gridlib",
		Table:     gridlib.New().Quirks(),
		Plugin:    library,
		Env:       []string{"PYTHONPATH=" + folder},
		Setup: `
import gridlib
def put(value):
    grid = gridlib.zeros(1, 2)
    grid.put(0, 1, value)
    return grid
`,
		Witnesses: []programtest.Witness{
			{
				ID: "gridlib.pending-before-2", Array: `put(1.5)`,
				With:    `^view of float32\[1 2\] writable, staged below-threshold: 000000000000c03f$`,
				Without: `^view of float32\[1 2\] writable, staged below-threshold: 0000000000000000$`,
			},
		},
	}
}

// TestQuirks proves each quirk on the versions that have it, and that the others go without it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string][]core.QuirkID{
		"gridlib-1.4": {"gridlib.pending-before-2"},
		"gridlib-2.0": nil,
	} {
		if proven := quirks(folder).Prove(t, programtest.Variable(t, "NDBRIDGE_TEST_PYTHON")); !slices.Equal(proven, want) {
			t.Errorf("%s has %v, want %v", folder, proven, want)
		}
	}
}

// TestQuirkTable checks that each quirk is described and has a witness.
func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks("").CheckTable(t)
}
