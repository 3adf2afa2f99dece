package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the Python program
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed epochs.py
var epochsScript string

// epochsWork says how much of a training is measured that forks at each epoch.
type epochsWork struct {
	epochs, workers int
	rest            int // MiB that the program has beside its model
}

// epochs are what a training notices of a host that looks at its model, when it forks at each epoch.
type epochs struct {
	Workers int             `json:"workers"`
	Steps   []time.Duration `json:"steps_ns"`      // the mean step of each epoch
	Alone   []time.Duration `json:"steps_alone"`   // likewise, of a program of which nobody knows
	Again   []time.Duration `json:"live_again_ns"` // from a fork until all views were live, of those that no other followed before
	Forks   int             `json:"forks"`
	Wrong   int             `json:"wrong"` // standing views that showed something else than new ones, after an epoch
	Memory  memory          `json:"memory"`
	Without memory          `json:"memory_alone"`
}

const (
	epochLimit = time.Minute           // for an epoch, until the views are live
	watchEach  = 5 * time.Millisecond  // how often views are asked whether they are live
	memoryEach = 50 * time.Millisecond // how often memory is read
)

// epochsWatched is the program, and a host that looks at it.
type epochsWatched struct {
	program *bench.Worker
	pid     int
	clock   clock
	session *hostplugin.Session
	names   []string
	views   []*core.View
}

func measureEpochs(ctx context.Context, opts options, lib, dir string, out io.Writer) (_ *epochs, err error) {
	w := opts.epochs
	fmt.Fprintf(out, "measuring what a training that forks %d workers at each epoch notices of a host\n", w.workers)
	folder := filepath.Join(dir, "epochs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	start := func(env ...string) (*bench.Worker, int, error) {
		c := exec.CommandContext(ctx, opts.python, "-c", epochsScript, strconv.Itoa(w.workers), strconv.Itoa(w.rest))
		c.Env = append(os.Environ(), env...)
		program, err := bench.StartWorker(c, opts.program)
		if err != nil {
			return nil, 0, err
		}
		return program, c.Process.Pid, nil
	}
	alone, other, err := start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	ours := epochsWatched{clock: newClock()}
	if ours.program, ours.pid, err = start(append(listening(lib, folder), "NDBRIDGE_HEAP_PROMOTE=always")...); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.program.Close()) }()
	host, err := newHost(opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if err := ours.attach(ctx, host, hostplugin.Socket(socketOf(folder, ours.pid))); err != nil {
		return nil, err
	}
	e := &epochs{Workers: w.workers}
	for i := range w.epochs + 1 { // the first is to warm up
		err1 := ours.epoch(ctx, e)
		took, err2 := alone.Measure(bench.Key{}, 0, 1)
		if err := errors.Join(err1, err2, ctx.Err()); err != nil {
			return nil, err
		}
		if i > 0 {
			e.Alone = append(e.Alone, took...)
		} else {
			*e = epochs{Workers: w.workers}
		}
	}
	const memoryEpochs = 2
	e.Memory, err = memoryOfTree(ctx, ours.pid, func() error {
		_, err := ours.program.Measure(bench.Key{}, 0, memoryEpochs)
		return err
	})
	if err != nil {
		return nil, err
	}
	e.Without, err = memoryOfTree(ctx, other, func() error {
		_, err := alone.Measure(bench.Key{}, 0, memoryEpochs)
		return err
	})
	return e, err
}

// attach takes views of the whole model.
func (w *epochsWatched) attach(ctx context.Context, h *hostplugin.Host, t hostplugin.Target) (err error) {
	if w.session, err = h.Attach(ctx, t); err != nil {
		return err
	}
	const weights = 2
	for i := range weights {
		w.names = append(w.names, fmt.Sprintf("weights[%d]", i))
		v, err := w.session.View(ctx, w.names[i])
		if err != nil {
			return err
		}
		w.views = append(w.views, v)
	}
	if !w.live() {
		return fmt.Errorf("not all views of the model are live: %v", w.views)
	}
	return nil
}

func (w *epochsWatched) live() bool {
	return !slices.ContainsFunc(w.views, func(v *core.View) bool { return !v.Live() })
}

// epoch has the program make an epoch, and notes from when on the views were live.
func (w *epochsWatched) epoch(ctx context.Context, e *epochs) error {
	done := make(chan error, 1)
	go func() {
		took, err := w.program.Measure(bench.Key{}, 0, 1)
		e.Steps = append(e.Steps, took...)
		done <- err
	}()
	var live []int64 // when all were
	ctx, cancel := context.WithTimeout(ctx, epochLimit)
	defer cancel()
	for going, again := true, false; going || !again; {
		if again = w.live(); again {
			live = append(live, w.clock.now())
		}
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			going, again, done = false, false, nil
		case <-time.After(watchEach):
		case <-ctx.Done():
			return fmt.Errorf("the views are not live again (the epoch has ended: %v): %w", !going, ctx.Err())
		}
	}
	forks, err := w.program.Measure(bench.Key{Way: "forks"}, 0, 0)
	if err != nil {
		return err
	}
	e.Forks += len(forks)
	for i, fork := range forks {
		at, _ := slices.BinarySearch(live, int64(fork))
		if again := live[at]; i+1 == len(forks) || again < int64(forks[i+1]) {
			e.Again = append(e.Again, time.Duration(again)-fork)
		}
	}
	return w.compare(ctx, e)
}

// compare holds that the views, which have stood since before the first fork, show what new ones do.
func (w *epochsWatched) compare(ctx context.Context, e *epochs) error {
	for i, name := range w.names {
		fresh, err := w.session.View(ctx, name)
		if err != nil {
			return err
		}
		same := make([]byte, fresh.NBytes())
		now := make([]byte, fresh.NBytes())
		_, err1 := core.CopyBytes(ctx, same, w.views[i])
		_, err2 := core.CopyBytes(ctx, now, fresh)
		if err := errors.Join(err1, err2, fresh.Close()); err != nil {
			return err
		}
		if !bytes.Equal(same, now) {
			e.Wrong++
		}
	}
	return nil
}

// memoryOfTree is what a process and its children take while something goes on, and afterwards: each page once, also those that this process
// shares with them.
func memoryOfTree(ctx context.Context, pid int, work func() error) (m memory, err error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	for going := true; going; {
		select {
		case err := <-done:
			if err != nil {
				return m, err
			}
			going = false
		case <-time.After(memoryEach):
		}
		m.Idle = proportional(pid) + heapHere()
		m.Peak = max(m.Peak, m.Idle)
	}
	return m, ctx.Err()
}

// proportional is the memory of a process and its children; of those that have ended, none.
func proportional(pid int) (n int) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for child := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			n += proportional(id)
		}
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	return n + sizeOf(text, "Pss:")
}

// heapHere is the share of this process in the memory of shared heaps.
func heapHere() (n int) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0
	}
	defer f.Close()
	heap := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if first, _, _ := strings.Cut(line, " "); !strings.HasSuffix(first, ":") {
			heap = strings.Contains(line, "/memfd:ndbridge-heap")
		} else if heap {
			n += sizeOf([]byte(line), "Pss:")
		}
	}
	return n
}

// sizeOf is a field of the kernel's, in bytes.
func sizeOf(text []byte, field string) (n int) {
	_, after, _ := bytes.Cut(text, []byte(field))
	_, _ = fmt.Sscan(string(after), &n) // otherwise there is none
	return n * bench.KiB
}

// speed is that beside a host, over that alone, of the median epoch.
func (e *epochs) speed() float64 { return speedOver(e.Steps, e.Alone) }

func printEpochs(out io.Writer, e *epochs) {
	if e == nil {
		return
	}
	fmt.Fprintf(out, "\nA training that forks %d workers at each epoch, with its model viewed by a host and without, in turns.\n\n", e.Workers)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "viewed\tsteps a second\tmemory with children, MiB\twithout\tn\t")
	for _, r := range []struct {
		name  string
		steps []time.Duration
		m     memory
	}{{"yes", e.Steps, e.Memory}, {"no", e.Alone, e.Without}} {
		fmt.Fprintf(table, "%s\t%.1f\t%d\t%d\t%d\t\n", r.name, 1/bench.QuantilesOf(r.steps).P50.Seconds(), r.m.Peak/bench.MiB, r.m.Idle/bench.MiB, len(r.steps))
	}
	_ = table.Flush() // it writes where all else was written
}

// epochs holds a host to what a training that forks does not notice, and views to be live again at once.
func (j *judge) epochs(e *epochs) {
	if e == nil {
		return
	}
	figure := fmt.Sprintf("training that forks %d workers at each epoch, its model viewed", e.Workers)
	j.add(figure+", speed in the median epoch", ">= 0.98 of that alone", fmt.Sprintf("%.3f (%d epochs)", e.speed(), len(e.Steps)), e.speed() >= 0.98)
	again := bench.QuantilesOf(e.Again)
	j.add(figure+", standing views are live again after a fork", "<= 100 ms, and show what new views do",
		fmt.Sprintf("%s p50, %s at most (%d forks), %d of %d wrong", bench.TimeText(again.P50), bench.TimeText(slices.Max(e.Again)), e.Forks,
			e.Wrong, len(e.Steps)), slices.Max(e.Again) <= 100*time.Millisecond && e.Wrong == 0)
	for _, r := range []struct {
		when    string
		on, off int
		limit   float64
	}{{"at most", e.Memory.Peak, e.Without.Peak, 1.25}, {"afterwards", e.Memory.Idle, e.Without.Idle, 1.05}} {
		j.times(figure+", memory with its children "+r.when, float64(r.on)/float64(r.off), r.limit, "without a host",
			fmt.Sprintf("%d / %d MiB", r.on/bench.MiB, r.off/bench.MiB))
	}
}
