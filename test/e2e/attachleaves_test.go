package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachLeaves: hosts that come and go leave no descriptor in a program that works in a tight loop, and no mapping or thread each. What
// the first hosts bring, the plugin, stays: docs/noticed.md says so. Memory is not held to anything: that of Go's and Python's allocators goes
// up and down by more than what a few hosts could leave.
func TestAttachLeaves(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, numpy as np
print(ndbridge.listen(), flush=True)
def main():
    x = np.zeros(1 << 17)
    while True:
        x[5] += 1
main()
`, harness.RunningOptions{Heap: true})
	host := harness.NewHost(t)
	visit := func() {
		s := run.Attach(t, host)
		for range 3 {
			v := s.View(t, "main().x")
			if !v.Live() {
				t.Errorf("%v", v.Reason())
			}
			closed(t, v)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	type holding struct{ descriptors, mappings, threads int }
	holds := func() holding {
		return holding{harness.Descriptors(t, run.PID), len(harness.Mappings(t, run.PID)), harness.Threads(t, run.PID)}
	}
	const visits, slack = 50, 8 // Go makes a thread more when the machine is busy, and its memory lies in a few mappings more
	for range visits {
		visit()
	}
	var before, now holding
	harness.Eventually(t, harness.StartBound, "the hosts have left", func() bool {
		last := before
		before = holds()
		return last == before
	})
	for range visits {
		visit()
	}
	t.Cleanup(func() { t.Logf("held before: %+v; now: %+v", before, now) })
	harness.Eventually(t, harness.StartBound, "the program holds what it held", func() bool {
		now = holds()
		return now.descriptors <= before.descriptors && now.mappings <= before.mappings+slack && now.threads <= before.threads+slack
	})
}
