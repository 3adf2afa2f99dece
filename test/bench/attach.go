package main

import (
	"bufio"
	"context"
	_ "embed" // the Python program
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed attach.py
var attachScript string

// attachWork says how much of attaching is measured.
type attachWork struct {
	bytes   int // of the array that is looked at
	rounds  int // programs to attach to
	windows int // of watching, and as many without
	window  time.Duration
}

// attached is what it takes to come to a program that works in a tight loop, and what it costs the program to be looked at.
type attached struct {
	Bytes    int             `json:"bytes"`
	BySocket []time.Duration `json:"by_socket"` // until the first live view
	ByPID    []time.Duration `json:"by_pid"`    // likewise, of Python 3.14 that does not listen
	Late     []time.Duration `json:"late"`      // likewise, of one that began without the shared heap
	Speed    []float64       `json:"speed"`     // watched, over alone, in the time in which its main thread has a processor or waits for something
	Views    int             `json:"views"`
}

// looksEach is how often the local variables of a running function are looked at.
const looksEach = 10 * time.Millisecond

func measureAttaching(ctx context.Context, opts options, lib string, out io.Writer) (*attached, error) {
	fmt.Fprintln(out, "measuring how a host comes to programs that run")
	a := &attached{Bytes: opts.attach.bytes}
	for _, way := range []struct {
		python, heap string
		listens      bool
		took         *[]time.Duration
	}{{opts.python, lib, true, &a.BySocket}, {opts.python314, lib, false, &a.ByPID}, {opts.python314, "", false, &a.Late}} {
		for range opts.attach.rounds {
			if way.python == "" {
				break
			}
			took, err := attachOnce(ctx, opts, way.python, way.heap, way.listens)
			if err != nil {
				return nil, fmt.Errorf("attaching, %s, listens: %v: %w", way.python, way.listens, err)
			}
			*way.took = append(*way.took, took)
		}
	}
	return a, a.watch(ctx, opts, lib)
}

// loop runs the program until it is ended, and gives how to reach it.
func loop(ctx context.Context, w attachWork, python, heap string, listens bool) (pid int, target hostplugin.Target, end func(), err error) {
	run, err := os.MkdirTemp("", "ndbridge-bench-")
	if err != nil {
		return 0, target, nil, err
	}
	c := exec.CommandContext(ctx, python, "-c", attachScript, strconv.Itoa(w.bytes))
	c.Stderr, c.Env = os.Stderr, append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "LD_PRELOAD="+heap)
	if listens {
		c.Env = append(c.Env, listening(heap, run)...)
	}
	end = func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		_ = os.RemoveAll(run)
	}
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return 0, target, nil, errors.Join(err, os.RemoveAll(run))
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		end()
		return 0, target, nil, err
	}
	target = hostplugin.PID(c.Process.Pid)
	if listens {
		target = hostplugin.Socket(socketOf(run, c.Process.Pid))
	}
	// Its socket is there by then, and the loop has begun.
	return c.Process.Pid, target, end, pause(ctx, 200*time.Millisecond)
}

// listening is what a program with the shared heap has in its environment that lets hosts in, by a socket in a folder.
func listening(heap, folder string) []string {
	return []string{"LD_PRELOAD=" + heap, "NDBRIDGE_HEAP_LISTEN=" + folder, "NDBRIDGE_HEAP_NAME=bench"}
}

// socketOf is the socket of such a program.
func socketOf(folder string, pid int) string {
	return filepath.Join(folder, "bench."+strconv.Itoa(pid))
}

func newHost(opts options) (*hostplugin.Host, error) {
	return hostplugin.New(hostplugin.Config{Logger: slog.New(slog.DiscardHandler), LibDirs: []string{opts.lib}})
}

// attachOnce gives the time until the first live view.
func attachOnce(ctx context.Context, opts options, python, heap string, listens bool) (took time.Duration, err error) {
	_, target, end, err := loop(ctx, opts.attach, python, heap, listens)
	if err != nil {
		return 0, err
	}
	defer end()
	host, err := newHost(opts)
	if err != nil {
		return 0, err
	}
	defer host.Close()
	begin := time.Now()
	session, err := host.Attach(ctx, target)
	if err != nil {
		return 0, err
	}
	v, err := session.View(ctx, "main().x", hostplugin.NoCopy())
	if err != nil {
		return 0, err
	}
	took = time.Since(begin)
	data, err := core.Slice[float64](v)
	if err == nil && !v.Live() {
		err = errors.New("the view is not live")
	}
	for before := data[5]; err == nil && v.Live() && data[5] == before; { // what is live changes
		err = pause(ctx, time.Millisecond)
	}
	return took, err
}

// watch compares the speed of the program in turns: while a host takes views of its local variables, and while it does not.
func (a *attached) watch(ctx context.Context, opts options, lib string) error {
	pid, target, end, err := loop(ctx, opts.attach, opts.python, lib, true)
	if err != nil {
		return err
	}
	defer end()
	host, err := newHost(opts)
	if err != nil {
		return err
	}
	defer host.Close()
	session, err := host.Attach(ctx, target)
	if err != nil {
		return err
	}
	v, err := session.View(ctx, "steps")
	if err != nil {
		return err
	}
	steps, err := core.Slice[float64](v)
	if err != nil {
		return err
	}
	speed := func(each func() error) (float64, error) {
		ticker := time.NewTicker(looksEach)
		defer ticker.Stop()
		waited, err := waitedForProcessor(pid)
		before, begin := steps[0], time.Now()
		for err == nil && time.Since(begin) < opts.attach.window {
			<-ticker.C
			err = each()
		}
		done, took := steps[0]-before, time.Since(begin)
		after, err1 := waitedForProcessor(pid)
		return done / (took - after + waited).Seconds(), errors.Join(err, err1, ctx.Err())
	}
	for range opts.attach.windows {
		alone, err1 := speed(func() error { return nil })
		watched, err2 := speed(func() error {
			v, err := session.View(ctx, "main().x")
			if err == nil {
				a.Views++
				err = v.Close()
			}
			return err
		})
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		a.Speed = append(a.Speed, watched/alone)
	}
	return nil
}

// waitedForProcessor is how long a process's main thread could have run, and others ran on its processor. What it waits for Python's lock is no
// part of that.
func waitedForProcessor(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var ran, waited time.Duration
	_, err = fmt.Sscan(string(text), (*int64)(&ran), (*int64)(&waited))
	return waited, err
}

// speed is that of the median pair of windows.
func (a *attached) speed() float64 { return bench.Median(a.Speed) }

// attaching holds a host's coming to a moment, and what its looks take from the program to a hundredth.
func (j *judge) attaching(a *attached) {
	if a == nil {
		return
	}
	size := bench.SizeText(a.Bytes)
	j.within("attach by socket to a tight loop, first live view of "+size+", p50", bench.QuantilesOf(a.BySocket).P50, 20*time.Millisecond)
	if len(a.ByPID) > 0 {
		j.within("attach by PID to a tight loop, first live view of "+size+", p50", bench.QuantilesOf(a.ByPID).P50, 150*time.Millisecond)
		j.within("attach by PID without the shared heap, first live view of "+size+", p50", bench.QuantilesOf(a.Late).P50, 150*time.Millisecond)
	}
	j.add(fmt.Sprintf("speed of a program whose local variables are viewed %d times a second, median of %d turns", time.Second/looksEach, len(a.Speed)),
		">= 0.99 of that alone", fmt.Sprintf("%.3f (%d views)", a.speed(), a.Views), a.speed() >= 0.99)
}
