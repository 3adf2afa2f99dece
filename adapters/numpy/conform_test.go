package numpy_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestConform runs the producer's contract on this adapter alone.
func TestConform(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, coretest.Script, programtest.Options{Plugin: "numpy"})
	p.Finish(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}
