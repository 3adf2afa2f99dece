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
