package torch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestNames finds tensors where programs have them: in models, whose parts are found by __getattr__
// and __getitem__, and in what is made of models.
func TestNames(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, `
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 4)])
        self.parts = nn.ModuleDict({"head": nn.Conv2d(1, 2, 3)})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(5))])
        self.register_buffer("mean", torch.ones(6))

model = Net()
model.layers[0](torch.ones(1, 2)).sum().backward()
state = model.state_dict()
optimizer = torch.optim.Adam(model.parameters())
optimizer.step()
normed = nn.utils.weight_norm(nn.Linear(2, 7))
batch = {"x": [torch.ones(8), (torch.ones(9),)]}
best = torch.max(torch.ones(3, 11), 1)

import types, warnings
more = types.SimpleNamespace(warned=torch.zeros(1))
warnings.simplefilter("always")
warnings.showwarning = lambda *a, **k: more.warned.add_(1)
more.hidden = torch.ones(12, requires_grad=True) * 2
more.kept = torch.ones(13, requires_grad=True) * 2
more.kept.retain_grad()
more.kept.sum().backward()
class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        more.warned.add_(f is torch.Tensor.grad.__get__)
        return super().__torch_function__(f, types, args, kwargs or {})
more.sub = torch.ones(14).as_subclass(Sub)
more.x = torch.ones(15, requires_grad=True)
with torch.no_grad():
    more.x.grad = torch.ones(15)
    more.x.grad.grad = more.x # a circle
more.w = model.layers[0].weight.detach() # a shorter name of the same memory, and no key of the state
class Wrapped(nn.Module): # as torch.compile makes them
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"in": nn.Linear(1, 16), "\udc80": nn.Linear(1, 17)})
    def __getattr__(self, name):
        more.warned.add_(1)
        return getattr(super().__getattr__("inner"), name)
more.wrapped = Wrapped()
more.wrapped._modules["inner"]["in"](torch.ones(1, 1)).sum().backward()
more.warned.zero_()
`, programtest.Options{Python: python})
			p.Finish(t)
			for name, shape := range map[string][]int{
				"model.layers[0].weight":      {3, 2},
				"model.layers[-1].bias":       {4},
				"model.layers[0].weight.grad": {3, 2},
				"model.layers[0].weight.data": {3, 2},
				"model.layers[0].weight[1]":   {2},
				`model.parts["head"].weight`:  {2, 1, 3, 3},
				"model.parts.head.bias":       {2},
				"model.scales[0]":             {5},
				"model.mean":                  {6},
				`state["layers.0.weight"]`:    {3, 2},
				`batch["x"][1][0]`:            {9},
				"normed.weight":               {7, 2},
				"best.values":                 {3},
				"more.kept.grad":              {13},
				"more.x.grad":                 {15},

				`optimizer.state[model.layers[0].weight]["exp_avg"]`: {3, 2}, `optimizer.state[model.layers.0.bias]["exp_avg_sq"]`: {3},
			} {
				v, err := p.View(t, name, contract.Request{})
				if err != nil {
					t.Error(err)
				} else if !slices.Equal(v.Shape(), shape) || v.Framework() != "torch" {
					t.Errorf("%s: %v of %s, want %v", name, v.Layout(), v.Framework(), shape)
				}
			}
			for name, meant := range map[string]string{
				"model.layer": "layers", "model.layers[0].weigth": "weight", "model.maen": "mean", "model.part.head": "parts",
			} {
				_, err := p.View(t, name, contract.Request{NoWait: true})
				if core.Category(err) != "not found" || !strings.HasSuffix(err.Error(), `did you mean "`+meant+`"?`) {
					t.Errorf("%s: %v, want the remedy %q", name, err, meant)
				}
			}
			wrapped := `more.wrapped._modules["inner"]["in"]`
			states := []string{`optimizer.state[model.layers[0].weight]["exp_avg"]`, `optimizer.state[model.layers[0].bias]["exp_avg"]`}
			for pattern, want := range map[string][]string{
				"model.layers[0].*.grad": {"model.layers[0].weight.grad", "model.layers[0].bias.grad"}, "model.**.grad": {"model.layers[0].weight.grad", "model.layers[0].bias.grad"},
				`optimizer.state[*]["exp_avg"]`: states, `optimizer.**["exp_avg"]`: states, `optimizer.state[model.layers.0.weight]["exp_avg"]`: states[:1],
				"more.kept.**": {"more.kept"}, "more.hidden.**": {"more.hidden"}, "more.hidden.*": nil, "more.sub.**": {"more.sub"},
				"more.x.**": {"more.x"}, "more.x.*": {"more.x.grad"}, "more.wrapped.**.grad": {wrapped + ".weight.grad", wrapped + ".bias.grad"}, "more.wrapped.*": nil,
				"more.wrapped.**.weight": {wrapped + ".weight"}, // a key with a lone surrogate has no name
			} {
				found, err := p.Search(t.Context(), contract.Search{Pattern: pattern})
				var got []string
				for _, e := range found.Entries {
					got = append(got, e.Name)
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s means %q, %v, want %q", pattern, got, err, want)
				}
			}
			all, err := p.Search(t.Context(), contract.Search{Pattern: "**"})
			for _, name := range states {
				if !slices.ContainsFunc(all.Entries, func(e contract.Entry) bool { return e.Name == name }) {
					t.Errorf("** does not lead to %s, %v", name, err)
				}
			}
			if slices.ContainsFunc(all.Entries, func(e contract.Entry) bool { return strings.HasSuffix(e.Name, ".grad") }) {
				t.Error("** leads to gradients, which PyTorch replaces without Python's lock")
			}
			if v, err := p.View(t, "more.warned", contract.Request{}); err != nil {
				t.Error(err)
			} else if n, err := core.Slice[float32](v); err != nil || n[0] != 0 {
				t.Errorf("the program was warned, or its code has run, %v times, %v", n, err)
			}
			for name, meant := range map[string]string{
				`optimizer.state[best]`: "has no key that is the object best", "model[best]": "only a dict is looked into", "optimizer.state[nothing]": "no global variable",
			} {
				if _, err := p.View(t, name, contract.Request{NoWait: true}); err == nil || !strings.Contains(err.Error(), meant) {
					t.Errorf("%s: %v, want %q", name, err, meant)
				}
			}
			if _, err := p.View(t, "model", contract.Request{}); core.Category(err) != "unsupported operation" {
				t.Errorf("a model is an array: %v", err)
			}
			var listed []string
			for e, err := range p.Arrays(t.Context()) {
				if err != nil || e.Err != nil {
					t.Error(err, e.Err)
				}
				listed = append(listed, e.Name)
			}
			if len(listed) != 0 {
				t.Errorf("listed are %v, though no variable is a tensor", listed)
			}
		})
	}
}
