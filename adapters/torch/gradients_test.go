package torch_test

import (
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestGradientsInTheMaking leaves gradients alone while PyTorch replaces them: within a backward pass, and while one is dropped that is
// set to None. The memory of the tensor may be gone then, or go.
func TestGradientsInTheMaking(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, `
import threading, torch
leave = threading.Semaphore(0)

class Gate:
    @property
    def opened(self):
        leave.release()
        return torch.ones(1)

class Last:
    def __del__(self):
        stay("drops")

def stay(where):
    print(where, flush=True)
    leave.acquire()

class Sub(torch.Tensor):
    pass

gate = Gate()
w = torch.ones(3, requires_grad=True)
sub = torch.ones(4).as_subclass(Sub).requires_grad_()
(w.sum() + sub.sum()).backward()

def work():
    y = w * 2
    y.register_hook(lambda g: stay("computes"))
    y.sum().backward()
    stay("rests")
    w.grad.last = Last()
    w.grad = None

threading.Thread(target=work, daemon=True).start()
`, programtest.Options{Python: python})
			p.Finish(t)
			look := func(state string, there bool) {
				p.Said(t, state)
				found, err := p.Search(t.Context(), contract.Search{Pattern: "w.**.grad"})
				if err != nil || (len(found.Entries) == 1) != there {
					t.Errorf("while the program %s, w leads to %v, %v", state, found.Entries, err)
				}
				for _, name := range []string{"w.grad", "sub.grad"} {
					_, err := p.View(t, name, contract.Request{NoWait: true})
					if there && err != nil || !there && (core.Category(err) != "not found" || !strings.Contains(err.Error(), "cannot be read now")) {
						t.Errorf("while the program %s, %s: %v", state, name, err)
					}
				}
			}
			for _, state := range []string{"computes", "rests", "drops"} {
				look(state, state == "rests")
				if _, err := p.View(t, "gate.opened", contract.Request{}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
