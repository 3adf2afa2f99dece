package handoff_test

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// TestBothSidesOnOneCPU: a side that spins lets the other one run if that has no other CPU, so that the answer
// comes during the spin. Where it is allowed both run in real time: there nobody else makes room for them.
func TestBothSidesOnOneCPU(t *testing.T) {
	t.Parallel()
	const spin = 5 * time.Millisecond // Go itself interrupts what takes twice as long
	there, here := shmtest.Twice(t, handoff.MailboxSize(1))
	var settled atomic.Bool
	server, err := handoff.NewMailboxServer(there, 1, spin, func([]byte, []byte) []byte {
		if settled.CompareAndSwap(false, true) {
			onOneCPU(t)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	client, err := handoff.NewMailboxClient(here, spin, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close() // while both are where they are
		defer client.Close()
		alone := onOneCPU(t)
		var waits []time.Duration
		for range 20 {
			slot, err := client.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			begin := time.Now()
			if _, err = slot.Call(t.Context(), nil); err != nil {
				t.Error(err)
				return
			}
			waits = append(waits, time.Since(begin))
			slot.Release()
		}
		slices.Sort(waits)
		// At first the server is elsewhere. Later Go's own threads may come between.
		if alone && waits[4] >= spin {
			t.Errorf("answers came after %v, when the spin of %v was over", waits, spin)
		}
	}()
	<-done
}

// onOneCPU binds the goroutine's thread, which ends with it, to the first CPU. It reports whether nothing
// but its like interrupts it there.
func onOneCPU(t *testing.T) (alone bool) {
	t.Helper()
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Error(err)
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
	realTime := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	err := unix.SchedSetAttr(0, &realTime, 0)
	if err != nil && !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
	return err == nil
}
