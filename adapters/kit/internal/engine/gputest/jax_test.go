//go:build cuda

package gputest

import (
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// fakeJAX has arrays on a GPU that cannot be donated while a capsule of theirs is out, as JAX's.
const fakeJAX = `
import sys, types

class DType:
    num = 11
    def __str__(self):
        return "float32"

class ArrayImpl(Tensor2):
    dtype = DType()
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
    made[x.name] = made.get(x.name, -1) + 1
    return ArrayImpl(f"copy {made[x.name]} of {x.name}", x.value)

made = {}

jax = sys.modules["jax"] = types.ModuleType("jax")
jax.__version__, jax.device_put = "0.10.2", device_put

class Donate:
    def __getattr__(self, name):
        x = globals()[name]
        if log[x.name]["made"] > log[x.name]["deleted"]:
            return memoryview(b"\1")
        x.deleted = True
        return memoryview(b"\0")

class Late:
    """The name of an array that is donated, and of its successor from the third look on."""
    looks = 0
    @property
    def state(self):
        self.looks += 1
        return gone if self.looks < 3 else other

donate, late = Donate(), Late()
array, other, gone = ArrayImpl("array", 3), ArrayImpl("other", 4), ArrayImpl("gone", 5)
gone.deleted = True
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

// copies adds up what became of the framework's copies of the array.
func copies(t *testing.T, s *hostplugin.Session) (sum fate) {
	t.Helper()
	for name, f := range fates(t, s) {
		if strings.HasPrefix(name, "copy ") && strings.HasSuffix(name, " of array") {
			sum.Made, sum.Deleted = sum.Made+f.Made, sum.Deleted+f.Deleted
		}
	}
	return sum
}

// TestDonatedCopy holds the framework's copy for as long as the lease stands, and no longer; makes none to look again at
// an array that cannot change; and none to list arrays.
func TestDonatedCopy(t *testing.T) {
	t.Parallel()
	s := start(t, tensors(t)+fakeJAX, options{})
	source, err := s.Source("array")
	if err != nil {
		t.Fatal(err)
	}
	v, err := source.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all(t, v, 3)
	var made int
	// A look that has taken 10 ms is begun again elsewhere, and its copy goes back.
	eventually(t, "one copy is held while it is leased", func() bool {
		f := copies(t, s)
		made = f.Made
		return f.Made == f.Deleted+1
	})
	for range 3 {
		next, changed, err := source.Refresh(t.Context(), v)
		if err != nil || changed || next != v {
			t.Fatalf("looked at again: %v, changed: %v, %v", next, changed, err)
		}
	}
	for e, err := range s.Arrays(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		if e.Name == "array" && (e.Err != nil || e.Layout.NBytes() != v.NBytes() || e.Layout.Device() != v.Device() || e.Layout.DType() != v.DType()) {
			t.Errorf("listed as %v (%v)", e.Layout, e.Err)
		}
	}
	if f, array := copies(t, s), fates(t, s)["array"]; f.Made != made || f.Deleted != made-1 || array.Made != 0 {
		t.Errorf("while the copy is leased: copies %+v, the array %+v", f, array)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the copy is given back", func() bool { return copies(t, s).Deleted == made })
}

// TestDonatedArgument passes a view of a copy that the framework made: the function gets the array itself, for as long as
// the name leads to it.
func TestDonatedArgument(t *testing.T) {
	t.Parallel()
	s := start(t, tensors(t)+fakeJAX+`
def same(x):
    return x is array

def rebind():
    global array
    enter()
    array = ArrayImpl("array", 3)
`, options{})
	same, err := s.Func(t.Context(), "same")
	if err != nil {
		t.Fatal(err)
	}
	rebind, err := s.Func(t.Context(), "rebind")
	if err != nil {
		t.Fatal(err)
	}
	v := take(t, s, "array")
	if v.Reason() != contract.ReasonMayBeDonated {
		t.Fatalf("it came by %v, because of %q", v.Route(), v.Reason())
	}
	result, err := same.Call(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	var is bool
	if err := result.Decode(&is); err != nil || !is {
		t.Errorf("the argument is the array: %v, %v", is, err)
	}
	if _, err := rebind.Call(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = same.Call(t.Context(), v)
	refused(t, "a view of what the name led to before", err, core.ErrUnsupported, "leads to another array now")
}

// TestDonatedNext looks at a name whose array has just been donated: it soon leads to the next one.
func TestDonatedNext(t *testing.T) {
	t.Parallel()
	s := start(t, tensors(t)+fakeJAX, options{})
	all(t, take(t, s, "late.state"), 4)
}
