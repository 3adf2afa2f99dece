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
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, tensorsScript, programtest.Options{Python: python})
			p.Finish(t)
			programtest.CheckReport(t, p, "torch", "tensors", 75)
		})
	}
}
