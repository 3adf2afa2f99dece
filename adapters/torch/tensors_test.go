package torch_test

import (
	_ "embed" // tensors.py
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
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
			p := programtest.Start(t, tensorsScript, programtest.Options{Python: python, Plugin: "torch"})
			p.Finish(t)
			everything := programtest.Report(t, p, "report")
			if len(everything) < 75 {
				t.Fatalf("only %d tensors", len(everything))
			}
			for _, s := range everything {
				v, err := p.View(t, "tensors["+strconv.Quote(s.Name)+"]", core.Request{})
				if err := s.Check("torch", v, err); err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
				if v != nil {
					_ = v.Close()
				}
			}
			if info, err := p.Info(t.Context()); err != nil || info.Leases != 0 {
				t.Errorf("%d leases are left (%v)", info.Leases, err)
			}
		})
	}
}
