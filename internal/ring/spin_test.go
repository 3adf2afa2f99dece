package ring_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// TestNobodySpinsOnTheOthersCPU: a side that would spin for long sleeps when the other one was last seen
// on its own CPU, and answers come all the same.
func TestNobodySpinsOnTheOthersCPU(t *testing.T) {
	t.Parallel()
	const spin = 20 * time.Second
	there, here := shmtest.Twice(t, ring.Size(1))
	proceed := make(chan struct{})
	var cpu atomic.Uint32 // of both, and 1
	server, err := ring.NewServer(there, 1, spin, func([]byte, []byte) int {
		cpu.Store(onOneCPU(t) + 1)
		ring.Word(there, ring.ServerCPU).Store(cpu.Load())
		<-proceed
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := ring.NewClient(here, spin, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answered := make(chan error)
	go func() {
		onOneCPU(t)
		_, err := call(t.Context(), client, nil, nil)
		answered <- err
	}()
	sleeps(t, there, ring.CallerAsleep)
	close(proceed)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	ring.Word(here, ring.CallerCPU).Store(cpu.Load())
	sleeps(t, here, ring.ServerAsleep)
	if _, err := call(t.Context(), client, nil, nil); err != nil {
		t.Error(err)
	}
}

// onOneCPU keeps the goroutine, and its thread, where it is.
func onOneCPU(t *testing.T) (cpu uint32) {
	t.Helper()
	runtime.LockOSThread() // and the thread ends with the goroutine
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Error(err)
	}
	for !all.IsSet(int(cpu)) {
		cpu++
	}
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Error(err)
	}
	return cpu
}

// sleeps waits until a side says that it sleeps.
func sleeps(t *testing.T, mem []byte, offset int) {
	t.Helper()
	for begin := time.Now(); ring.Word(mem, offset).Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Error("a side spins for one that it keeps from running")
			return
		}
	}
}
