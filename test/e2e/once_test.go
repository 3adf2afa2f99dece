package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestPropertiesRunOnce: each look runs a property once, and gets what that look has given, though the program keeps
// Python's lock for longer than a mailbox is waited for.
func TestPropertiesRunOnce(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import threading, numpy as np, remote
class Queue:
    taken = 0
    @property
    def next(self):
        self.taken += 1
        return np.full(1 << 17, self.taken, "u1")
queue, over = Queue(), False
def holds():
    while not over:
        sum(range(20_000_000)) # in C, with the lock
thread = threading.Thread(target=holds)
thread.start()
remote.serve()
`, harness.Options{})
	const looks = 5
	for i := range looks {
		v := run.View(t, "queue.next")
		if got := slice[uint8](t, v)[0]; int(got) != i+1 {
			t.Errorf("look %d got what was taken as number %d", i+1, got)
		}
		closeView(t, v)
	}
	run.Remote.Exec(t, "over = True; thread.join()")
	if taken := harness.Eval[int](t, run.Remote, "queue.taken"); taken != looks {
		t.Errorf("%d looks have run the property %d times", looks, taken)
	}
}

// TestHintsRunNoCode: what looks beside a call that takes long what the caller may have meant leaves properties alone.
func TestHintsRunNoCode(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import time, numpy as np, remote
class Slow:
    taken = 0
    @property
    def next(self):
        self.taken += 1
        time.sleep(2.5) # longer than a call is left alone
        return np.full(3, self.taken)
slow = Slow()
remote.serve()
`, harness.Options{})
	closeView(t, run.View(t, "slow.next"))
	if taken := harness.Eval[int](t, run.Remote, "slow.taken"); taken != 1 {
		t.Errorf("one look has run the property %d times", taken)
	}
}
