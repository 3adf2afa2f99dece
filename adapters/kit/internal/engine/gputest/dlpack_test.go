//go:build cuda

package gputest

import (
	_ "embed"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// tensors are fakes that speak DLPack, as the tests of host memory have them, on a GPU.
func tensors(t *testing.T) string {
	t.Helper()
	fakes, err := os.ReadFile("../testdata/fakes.py")
	if err != nil {
		t.Fatal(err)
	}
	return streams + string(fakes) + `
class Tensor2(Fake):
    """Makes the stream wait, as the specification says."""
    def __init__(self, name, value, device=(2, 0), **kw):
        self.on = new_stream()
        self.array = slow(value, self.on)
        p = self.array.__cuda_array_interface__["data"][0]
        super().__init__(name, shape=(MB // 4,), bits=32, data=p, device=device, stream=True, **kw)
        log[name]["streams"] = []

    def __dlpack__(self, stream=None, **kw):
        log[self.name]["streams"].append({None: "none", -1: "-1"}.get(stream, "a stream"))
        if stream is not None and stream > 2:
            enter()
            event = out(p64, "cuEventCreate", 2)
            call("cuEventRecord", p64(event), p64(self.on))
            call("cuStreamWaitEvent", p64(stream), p64(event), 0)
        return super().__dlpack__(**kw)
`
}

type fate struct {
	Made, Deleted int
	Streams       []string
}

func fates(t *testing.T, s *hostplugin.Session) map[string]fate {
	t.Helper()
	text, err := core.Slice[uint8](take(t, s, "reports.now"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]fate{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDLPack takes tensors, asks for the stream that the policy says, and gives each capsule back once.
func TestDLPack(t *testing.T) {
	t.Parallel()
	for policy, stream := range map[contract.SyncPolicy]string{contract.SyncDevice: "-1", contract.SyncStream: "a stream"} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := start(t, tensors(t)+`
legacy = Tensor2("legacy", 1)
versioned = Tensor2("versioned", 2, versioned=True)
elsewhere = Tensor2("elsewhere", 3, versioned=True, device=(2, 1))
`, options{sync: policy})
			for i, name := range []string{"legacy", "versioned"} {
				v := take(t, s, name)
				all(t, v, float32(i+1))
				// A look that has taken 10 ms is begun again elsewhere, and what it took goes back.
				eventually(t, name+" is held once while it is leased", func() bool {
					f := fates(t, s)[name]
					return f.Made == f.Deleted+1 && !slices.ContainsFunc(f.Streams, func(s string) bool { return s != stream })
				})
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				eventually(t, name+" is given back once", func() bool {
					f := fates(t, s)[name]
					return f.Made > 0 && f.Deleted == f.Made
				})
			}
			_, err := try(t, s, "elsewhere")
			refused(t, "elsewhere", err, core.ErrPointer, "said to be on cuda:1")
			eventually(t, "what is refused is given back", func() bool {
				f := fates(t, s)["elsewhere"]
				return f.Made > 0 && f.Deleted == f.Made
			})
			if f := fates(t, s)["legacy"]; f.Deleted != f.Made {
				t.Errorf("in the end: %+v", f)
			}
		})
	}
}

// TestDLPackPublished waits for what was published, whatever the stream is said to be.
func TestDLPackPublished(t *testing.T) {
	t.Parallel()
	s := start(t, tensors(t)+`
import ndbridge
tensor = Tensor2("tensor", 4, versioned=True)
ndbridge.publish("frame", tensor)
`, options{})
	all(t, take(t, s, "frame"), 4)
}
