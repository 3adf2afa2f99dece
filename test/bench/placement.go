package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/bench"
)

// onTwoCPUs is in the name of a way of which the calling thread is bound to one CPU and all threads of the other side
// to another: where a wake-up finds its CPU makes a difference of several times.
const onTwoCPUs = ", a CPU for each side"

// placement is where two sides run.
type placement struct{ anywhere, here, there unix.CPUSet }

// newPlacement gives nil if there is only one CPU for this process.
func newPlacement() (*placement, error) {
	p := &placement{}
	if err := unix.SchedGetaffinity(0, &p.anywhere); err != nil {
		return nil, err
	}
	if p.anywhere.Count() < 2 {
		return nil, nil //nolint:nilnil // as said
	}
	cpu := 0
	for _, set := range []*unix.CPUSet{&p.here, &p.there} {
		for !p.anywhere.IsSet(cpu) {
			cpu++
		}
		set.Set(cpu)
		cpu++
	}
	return p, nil
}

// addApart has a caller measured that asks another process.
func (l *lab) addApart(k bench.Key, calls int, caller bench.Caller, pid int) {
	s := l.plan.Add(k, calls, caller)
	s.Turn = l.apart(pid, s.Turn)
}

// apart takes a turn on one CPU, while all threads of another process are on another.
func (l *lab) apart(pid int, turn bench.Turn) bench.Turn {
	return func(ctx context.Context) (took []time.Duration, err error) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() {
			err = errors.Join(err, unix.SchedSetaffinity(0, &l.cpus.anywhere), bind(pid, &l.cpus.anywhere))
		}()
		if err := errors.Join(unix.SchedSetaffinity(0, &l.cpus.here), bind(pid, &l.cpus.there)); err != nil {
			return nil, err
		}
		return turn(ctx)
	}
}

// bind has all threads of a process run on some CPUs: in a second pass those too that one has begun meanwhile whose
// turn was yet to come.
func bind(pid int, cpus *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, cpus); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}
