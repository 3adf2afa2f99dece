package cudacore_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/cudacore"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
)

const setup = `
from cuda.core import Device

device = Device()
device.set_current()
stream = device.create_stream()
`

// quirks is the table with its witnesses, but for the one of TestStreamIgnored.
func quirks(env []string) *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "cudacore",
		Table:     cudacore.New().Quirks(),
		Env:       env,
		Setup:     setup + "seven = device.allocate(4, stream=stream)\nseven.fill(7, stream=stream)\n",
		Witnesses: []programtest.Witness{
			{
				ID: "cudacore.buffers-as-int8", Array: `seven`,
				With:    `^view of uint8\[4\] writable.*: 07070707$`,
				Without: `^view of int8\[4\] writable.*: 07070707$`,
			},
		},
	}
}

// witnessElsewhere is the quirk that shows only while work runs.
const witnessElsewhere = core.QuirkID("cudacore.stream-ignored")

// TestQuirks proves each quirk on the real cuda.core, on a GPU or on the simulated driver.
func TestQuirks(t *testing.T) {
	t.Parallel()
	versions, env := pythons(t)
	quirks(env).ProveEach(t, versions, os.Getenv("NDBRIDGE_TEST_PYTHONS_CUDACORE") != "", witnessElsewhere)
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks(nil).CheckTable(t, witnessElsewhere)
}
