//go:build cuda

package gputest

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// fakeJAX has arrays on a GPU that cannot be donated while a capsule of theirs is out, as JAX's.
const fakeJAX = `
import sys, types

class ArrayImpl(Tensor2):
    dtype = types.SimpleNamespace(num=11)
    sharding = types.SimpleNamespace(device_set={0})
    deleted = False
    def __init__(self, name, value):
        super().__init__(name, value)
        self.value = value

    def is_deleted(self):
        return self.deleted

ArrayImpl.__module__ = "jaxlib"

def device_put(x, may_alias=None):
    if x.deleted:
        raise RuntimeError("Array has been deleted")
    assert may_alias is False
    enter()
    return ArrayImpl(x.name + " copied", x.value)

jax = sys.modules["jax"] = types.ModuleType("jax")
jax.__version__, jax.device_put = "0.10.2", device_put

class Donate:
    def __getattr__(self, name):
        x = globals()[name]
        if log[x.name]["made"] > log[x.name]["deleted"]:
            return memoryview(b"\1")
        x.deleted = True
        return memoryview(b"\0")

donate = Donate()
array, other = ArrayImpl("array", 3), ArrayImpl("other", 4)
import ndbridge
ndbridge.publish("published", other)
`

// TestDonation looks at arrays that the program may donate: what was not published is held as a copy that the framework
// makes, and the program may donate the array itself.
func TestDonation(t *testing.T) {
	t.Parallel()
	hold := []hostplugin.QuirkSetting{{ID: "jax.may-be-donated", Effect: "hold"}}
	for name, c := range map[string]struct {
		array   string
		quirks  []hostplugin.QuirkSetting
		value   float32
		route   core.Route
		reason  core.Reason
		refused byte // the donation
	}{
		"copy":      {"array", nil, 3, contract.RouteCUDAStaged, contract.ReasonMayBeDonated, 0},
		"published": {"published", nil, 4, contract.RouteCUDAIPC, "", 1},
		"hold":      {"array", hold, 3, contract.RouteCUDAIPC, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tensors(t)+fakeJAX, options{jax: c.quirks})
			v := take(t, s, c.array)
			if v.Route() != c.route || v.Reason() != c.reason {
				t.Errorf("it came by %v, because of %q", v.Route(), v.Reason())
			}
			if c.reason != "" {
				_, err := try(t, s, c.array, hostplugin.NoCopy())
				refused(t, "without a copy", err, core.ErrNotShared, string(c.reason))
			}
			given := map[string]string{"array": "array", "published": "other"}[c.array]
			if got := bytesOf(t, take(t, s, "donate."+given)); got[0] != c.refused {
				t.Errorf("the donation was refused: %d, want %d", got[0], c.refused)
			}
			all(t, v, c.value)
			if c.refused == 0 {
				_, err := try(t, s, c.array)
				refused(t, "the donated array", err, core.ErrUnsupported, "donated")
			}
		})
	}
}
