package torch_test

import (
	_ "embed" // tensors.py
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/tensors.py
var tensorsScript string

// TestTensors compares the view of each kind of tensor with what PyTorch says of it.
func TestTensors(t *testing.T) {
	t.Parallel()
	programtest.CheckEach(t, pythons(t), nil, tensorsScript, "torch", "tensors", 75)
}
