package torch_test

import (
	_ "embed" // tensors.py
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/tensors.py
var tensorsScript string

// TestTensors compares the view of each kind of tensor with what PyTorch says of it.
func TestTensors(t *testing.T) {
	t.Parallel()
	programtest.CheckEach(t, pythons(t), nil, tensorsScript, "torch", "tensors", 75)
}

// TestTornTorch: where a part of torch is missing, a look is an error, and the program goes on.
func TestTornTorch(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import torch
x, nn = torch.nn.Parameter(torch.ones(3)), torch.nn
del torch.nn
class Back:
    def __getitem__(self, key): torch.nn = nn; return x
back = Back()
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	if _, err := p.View(t, "x", contract.Request{}); !errors.Is(err, core.ErrPython) {
		t.Errorf("without torch.nn: %v", err)
	}
	for _, name := range []string{"back[0]", "x"} {
		if _, err := p.View(t, name, contract.Request{}); err != nil {
			t.Errorf("with it again: %v", err)
		}
	}
}
