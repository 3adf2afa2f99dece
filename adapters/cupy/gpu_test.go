//go:build gpu

package cupy_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

// TestGPUQuirks proves each quirk on the real CuPy.
func TestGPUQuirks(t *testing.T) {
	t.Parallel()
	quirks().Prove(t, programtest.GPU(t))
}
