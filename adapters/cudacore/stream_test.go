package cudacore_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// lateScript has a buffer that is filled when it is named, behind work that takes long: only who waits
// for that sees the 2.
const lateScript = setup + `
times, size = (20, 1 << 12) if "simulated" in device.name else (1000, 1 << 28)
large = device.allocate(size, stream=stream)
number = device.allocate(4, stream=stream)


class Late:
    @property
    def now(self):
        device.set_current()  # of this thread
        number.fill(1, stream=stream)
        stream.sync()
        for _ in range(times):
            large.fill(0, stream=stream)
        number.fill(2, stream=stream)
        return number


late = Late()
`

// TestStreamIgnored holds that the work on a buffer is waited for even where a configuration leaves that to
// its framework, and that without the quirk nothing is: then the number is old.
func TestStreamIgnored(t *testing.T) {
	t.Parallel()
	versions, env := pythons(t)
	for version, python := range versions {
		for name, tt := range map[string]struct {
			disabled []core.QuirkID
			want     byte
		}{
			"with":    {nil, 2},
			"without": {[]core.QuirkID{witnessElsewhere}, 1},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := programtest.Start(t, lateScript, programtest.Options{
					Python: python, Env: append(env[:len(env):len(env)], "CUDASIM_DELAY_US=20000"),
					Settings: contract.Settings{Adapters: []contract.AdapterSettings{
						{Name: "cudacore", Sync: contract.SyncStream, DisabledQuirks: tt.disabled},
					}},
				})
				p.Finish(t)
				v, err := p.View(t, "late.now", contract.Request{})
				if err != nil {
					t.Fatal(err)
				}
				if x, err := core.At[uint8](v, 3); err != nil || x != tt.want {
					t.Errorf("the buffer holds %d, want %d (%v)", x, tt.want, err)
				}
			})
		}
	}
}
