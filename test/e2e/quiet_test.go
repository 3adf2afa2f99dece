package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestRefreshSeesAChangedClass: a class may change how its objects get attributes while a view stands.
func TestRefreshSeesAChangedClass(t *testing.T) {
	t.Parallel()
	const (
		box = "import numpy as np\nclass Box: pass\nbox = Box(); box.a = np.full(1 << 17, 1.0); other = np.full(1 << 17, 2.0)"
		net = "import torch\nclass Net(torch.nn.Module): pass\n" +
			"net = Net(); net.register_buffer('a', torch.full((1 << 18,), 1.0)); other = torch.full((1 << 18,), 2.0)"
	)
	for name, f := range map[string]follow{
		"numpy": {harness.Python(t), box, "box.a", []followed{
			{"Box.__getattribute__ = lambda self, name: other if name == 'a' else object.__getattribute__(self, name)", true, 2},
			{"del Box.__getattribute__", true, 1},
		}},
		"torch": {harness.PythonAll(t), net, "net.a", []followed{
			{"Net.__getattr__ = lambda self, name: other if name == 'a' else torch.nn.Module.__getattr__(self, name)", true, 2},
			{"del Net.__getattr__", true, 1},
			{"Net.__getattribute__ = lambda self, name: other if name == 'a' else object.__getattribute__(self, name)", true, 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, f.setup+"\nimport remote\nremote.serve()\n", harness.Options{Python: f.python})
			harness.Eval[int](t, run.Remote, "1") // everything is there
			src := source(t, run, f.name)
			v := viewOf(t, src)
			for _, step := range f.steps {
				v = step.look(t, run, src, v)
			}
			closed(t, v)
			run.NoLeases(t)
		})
	}
}
