package torch_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestRequiresGradAsChosen holds that users choose what becomes of tensors that require a gradient.
func TestRequiresGradAsChosen(t *testing.T) {
	t.Parallel()
	python := newest(t)
	for effect, want := range map[string]string{"detach": "", "refuse": "unsupported operation"} {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, "import torch\nweight = torch.nn.Parameter(torch.ones(3))\nplain = torch.ones(3)\n",
				programtest.Options{Python: python, Settings: contract.Settings{Adapters: []contract.AdapterSettings{
					{Name: "torch", QuirkEffects: map[core.QuirkID]string{"torch.requires-grad": effect}},
				}}})
			p.Finish(t)
			if _, err := p.View(t, "plain", contract.Request{}); err != nil {
				t.Error(err)
			}
			text, took := "", core.QuirkID("")
			v, err := p.View(t, "weight", contract.Request{})
			if err != nil {
				text, took = core.Category(err), err.(*core.Error).Quirk //nolint:errcheck,errorlint // a lease's error is one
			} else if len(v.Quirks()) > 0 {
				took = v.Quirks()[0]
			}
			if text != want || took != "torch.requires-grad" {
				t.Errorf("%v, decided by %q", err, took)
			}
		})
	}
}
