package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// newThreads is a program in which threads come to Python all the time that Python has not made.
const newThreads = `
import ctypes, threading, numpy as np, remote
libc = ctypes.CDLL(None)
comes = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)

def work():
    x, thread = np.ones(1 << 14), ctypes.c_ulong()
    while True:
        assert libc.pthread_create(ctypes.byref(thread), None, comes, None) == 0
        libc.pthread_join(thread, None)

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
remote.serve()
`

// TestLocalsBesideNewThreads: a thread that Python has not made is listed, in Python 3.11, before its state is filled, and without Python's lock.
// Who looks for the variables of functions meanwhile finds them, and the program goes on.
func TestLocalsBesideNewThreads(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, newThreads, harness.Options{Python: pythonOf(t, "3.11")})
	harness.Eventually(t, harness.StartBound, "work has begun", func() bool {
		found, err := run.Names(t.Context(), "work().x")
		return err == nil && len(found) == 1
	})
	for range 40000 {
		v := run.View(t, "work().x")
		closeView(t, v)
	}
}
