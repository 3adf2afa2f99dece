package pyarrow_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestConform runs the producer's contract on a program whose arrays are PyArrow's, as far as it has
// such.
func TestConform(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, setup+coretest.Script+`
for name in "counts", "halves":
    globals()[name] = pa.array(globals()[name])
for name in "columns", "picture", "samples":
    globals()[name] = pa.Tensor.from_numpy(globals()[name])
del name
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}
