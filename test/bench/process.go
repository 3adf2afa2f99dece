package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

// idleCost is what a session costs while nothing happens, in parts of a core.
type idleCost struct {
	Host    float64       `json:"host"`
	Program float64       `json:"program"`
	For     time.Duration `json:"for_ns"`
}

// measureIdle looks at how long this process and a program ran, while nothing happens but that views stand: those
// of the subjects, each of which takes a turn before.
func measureIdle(ctx context.Context, pid int, subjects []*bench.Subject, length time.Duration) (_ idleCost, err error) {
	for _, s := range subjects {
		if _, err := s.Turn(ctx); err != nil {
			return idleCost{}, err
		}
	}
	// Until what was just asked is forgotten.
	if err := pause(ctx, min(time.Second, length)); err != nil {
		return idleCost{}, err
	}
	pids := [2]int{os.Getpid(), pid}
	var ran [2]time.Duration
	start := time.Now()
	for i, pid := range pids {
		if ran[i], err = processorTime(pid); err != nil {
			return idleCost{}, err
		}
	}
	if err := pause(ctx, length); err != nil {
		return idleCost{}, err
	}
	for i, pid := range pids {
		now, err := processorTime(pid)
		if err != nil {
			return idleCost{}, err
		}
		ran[i] = now - ran[i]
	}
	took := time.Since(start)
	return idleCost{Host: float64(ran[0]) / float64(took), Program: float64(ran[1]) / float64(took), For: took}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processorTime is how long a process's threads have run until now.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The fields follow the command's name, which may hold anything but ends with the last ')'.
	const user, system, tick = 11, 12, 10 * time.Millisecond
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// holdings is what a process holds.
type holdings struct {
	Resident    int64 `json:"resident_bytes"`
	Descriptors int   `json:"descriptors"`
	Segments    int   `json:"segments"` // mappings of shared memory
	Threads     int   `json:"threads"`
}

func (h holdings) minus(o holdings) holdings {
	return holdings{h.Resident - o.Resident, h.Descriptors - o.Descriptors, h.Segments - o.Segments, h.Threads - o.Threads}
}

func (h holdings) String() string {
	return fmt.Sprintf("%+.1f MiB, %+d descriptors, %+d segments, %+d threads", float64(h.Resident)/bench.MiB, h.Descriptors, h.Segments, h.Threads)
}

// bothHold is what this process and another hold.
func bothHold(pid int) (host, program holdings, err error) {
	debug.FreeOSMemory() // what is garbage is not held
	if host, err = holdingsOf(os.Getpid()); err == nil {
		program, err = holdingsOf(pid)
	}
	return host, program, err
}

func holdingsOf(pid int) (h holdings, err error) {
	of := fmt.Sprintf("/proc/%d/", pid)
	files, err1 := os.ReadDir(of + "fd")
	threads, err2 := os.ReadDir(of + "task")
	maps, err3 := os.ReadFile(of + "maps")
	statm, err4 := os.ReadFile(of + "statm")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return h, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return h, err
	}
	return holdings{pages * int64(os.Getpagesize()), len(files), strings.Count(string(maps), "/memfd:"), len(threads)}, nil
}
