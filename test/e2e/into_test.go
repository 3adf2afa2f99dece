package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestIntoMakesNoGarbage looks at a NumPy array again and again through one View: nothing is allocated
// for it in the host, and each look is at the array's own memory.
func TestIntoMakesNoGarbage(t *testing.T) {
	run := harness.Start(t, `
import numpy, remote
frame = numpy.arange(1 << 20, dtype=numpy.float32)
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) {
		c.Programs[0].HandoffSpin = new(10 * time.Millisecond) // a busy machine gets its answers by the ring too
	}}})
	src, err := run.Source("frame")
	if err != nil {
		t.Fatal(err)
	}
	var v core.View
	var want float32
	look := func() {
		if err := src.Into(t.Context(), &v, hostplugin.NoCopy()); err != nil {
			t.Fatal(err)
		}
		if frame, err := v.Float32s(); err != nil || frame[1<<20-1] != want {
			t.Fatalf("the last element is %v, %v; want %v", frame[1<<20-1], err, want)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		want = float32(i)
		run.Remote.Exec(t, fmt.Sprintf("frame[-1] = %d", i))
		// On a busy machine an answer may come late, and then the next views are asked for by gRPC, so it is
		// few views at a time.
		harness.Eventually(t, 30*time.Second, "views without an allocation", func() bool {
			return testing.AllocsPerRun(50, look) == 0
		})
	}
	run.NoLeases(t)
}
