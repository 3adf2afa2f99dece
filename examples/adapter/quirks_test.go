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
		Setup:     "import gridlib",
		Witnesses: []programtest.Witness{
			{
				ID: "gridlib.bool-before-2", Array: `gridlib.zeros(1, 3, "bool")`,
				With:    `^view of bool\[1 3\] writable, .*: 000000$`,
				Without: `^view of uint8\[1 3\] writable, .*: 000000$`,
			},
		},
	}
}

// TestQuirks proves each quirk on the versions that have it, and that the others go without it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string][]core.QuirkID{
		"gridlib-1.4": {"gridlib.bool-before-2"},
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
