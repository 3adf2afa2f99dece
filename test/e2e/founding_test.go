package e2e

// The five problems that ndbridge began from, each as a test by name: the real framework fails when it is
// asked as the standards say, and the same array is a right view through a host. They are: JAX with stream
// -1 and the unversioned capsule, a CUDA Array Interface without strides and with stream None, NumPy
// accepting no stream but None, and pinned and managed memory as a kernel argument.
//
// The tests whose names end in OnGPU run on a GPU, where there is one, and on the simulated driver
// elsewhere, but for JAX's, which needs a GPU (make test-gpu). The others are the half of each problem that
// is protocol.

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// startTaken runs a script whose framework is taken at its word in what these quirks are about.
func startTaken(t *testing.T, python, framework, script string, disabled ...core.QuirkID) *harness.Run {
	t.Helper()
	var settings []hostplugin.QuirkSetting
	for _, id := range disabled {
		settings = append(settings, hostplugin.QuirkSetting{ID: id, Disabled: true})
	}
	return harness.Start(t, script+"\nimport remote\nremote.serve()\n", harness.Options{
		Python: python,
		Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) {
			if len(settings) > 0 {
				c.Adapters = []hostplugin.Adapter{{Name: framework, Quirks: settings}}
			}
		}},
	})
}

// raised is what evaluating an expression in the program raises: "RuntimeError: text", or "nothing".
const raised = `
def raised(f):
    try:
        f()
    except Exception as e:
        return type(e).__name__ + ": " + str(e)
    return "nothing"
`
