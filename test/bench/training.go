package main

import (
	"context"
	_ "embed" // the Python program
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

//go:embed training.py
var trainingScript string

// trainingWork says how much of a training is measured.
type trainingWork struct {
	rounds int
	round  time.Duration // of one without anything
}

// warmSteps are made before any is measured.
const warmSteps = 20

// trained is the speed of one training, with all its weights inspected in several ways.
type trained struct {
	Torch   string          `json:"torch"`
	Device  string          `json:"device"` // of torch
	Ways    []trainedWay    `json:"ways"`   // without any, with ours, and with ours while it does nothing; then the others'
	LeftOut []bench.LeftOut `json:"left_out"`
	Period  time.Duration   `json:"period_ns"` // between two looks of ndbridge at one weight, at the end
}

// trainedWay is one way. Waiting for a processor, while others have it, is no part of a step's time.
type trainedWay struct {
	Way   string          `json:"way"`
	Steps []time.Duration `json:"steps_ns"` // the mean step of each round

	program *bench.Worker
	looked  bool // the page goes on meanwhile
}

// over is a way's speed over another's, in the median round.
func (w trainedWay) over(o trainedWay) float64 { return speedOver(w.Steps, o.Steps) }

// speedOver is the speed of a program over that of another, in the median round, by the time that a step took each of them.
func speedOver(steps, others []time.Duration) float64 {
	var ratios []float64
	for i, step := range steps {
		ratios = append(ratios, float64(others[i])/float64(step))
	}
	return bench.Median(ratios)
}

const (
	trainedAlone = "nothing"
	trainedAgain = "nothing, another program"
	trainedOurs  = "ndbridge inspect, a page open"
	trainedRests = "the same program, ndbridge inspect stopped"
	trainedWandb = `wandb.watch(log="all")`
	trainedBoard = "TensorBoard histograms"
)

// pageLooks is what the page looks at.
const pageLooks = `"name": "weight_0_weight", "auto": true, "width": 256, "height": 256, "line": -1`

func measureTraining(ctx context.Context, opts options, lib, dir string, out io.Writer) (_ *trained, err error) {
	fmt.Fprintln(out, "measuring what a training notices of its weights being inspected")
	t := &trained{Device: opts.device}
	packages := ""
	if opts.trackers == "" {
		t.LeftOut = []bench.LeftOut{{Way: trainedWandb, Why: "there is no environment with it"}, {Way: trainedBoard, Why: "there is no environment with it"}}
	} else if packages, err = packagesOf(ctx, opts.trackers); err != nil {
		return nil, err
	}
	var ends []func() error
	defer func() {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
	}()
	ours := "" // socket
	for _, way := range []struct{ name, word string }{
		{trainedAlone, "alone"}, {trainedOurs, "ours"}, {trainedWandb, "wandb"}, {trainedBoard, "tensorboard"}, {trainedAgain, "again"},
	} {
		if slices.ContainsFunc(t.LeftOut, func(l bench.LeftOut) bool { return l.Way == way.name }) {
			continue
		}
		folder := filepath.Join(dir, way.word)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, opts.python, "-c", trainingScript, way.word, folder, packages, opts.device)
		if way.name == trainedOurs {
			c.Env = append(os.Environ(), listening(lib, folder)...)
		}
		program, err := bench.StartWorker(c, opts.program)
		if err != nil {
			t.LeftOut = append(t.LeftOut, bench.LeftOut{Way: way.name, Why: err.Error()})
			continue
		}
		ends = append(ends, program.Close)
		t.Torch = program.Versions["torch"]
		t.Ways = append(t.Ways, trainedWay{Way: way.name, program: program})
		if way.name == trainedOurs {
			ours = socketOf(folder, c.Process.Pid)
			t.Ways[len(t.Ways)-1].looked = true
			t.Ways = append(t.Ways, trainedWay{Way: trainedRests, program: program})
		}
	}
	if len(t.Ways) < 2 || t.Ways[1].Way != trainedOurs {
		return nil, fmt.Errorf("no training can be measured: %+v", t.LeftOut)
	}
	// All arrays are looked at twice a second, for the alarms.
	p, err := openPage(ctx, opts, ours, "--alarm", "nan", "--alarm", "inf")
	if err != nil {
		return nil, err
	}
	ends = append(ends, p.close)
	if err := p.look(ctx, pageLooks); err != nil {
		return nil, err
	}
	if err := t.turns(p, opts.training); err != nil {
		return nil, err
	}
	t.Period, err = t.period(ctx, p)
	return t, err
}

// period is [page.period] while the training goes on.
func (t *trained) period(ctx context.Context, p *page) (period time.Duration, err error) {
	found := make(chan error, 1)
	go func() {
		var err error
		period, err = p.period(ctx, "weight_30_weight")
		found <- err
	}()
	for {
		select {
		case err := <-found:
			return period, err
		default:
		}
		if _, err := t.Ways[1].program.Measure(bench.Key{}, 0, warmSteps); err != nil {
			return 0, errors.Join(err, <-found)
		}
	}
}

// turns has all trainings make steps, one after the other. The page stands still but for the turns in which it is to look.
func (t *trained) turns(p *page, work trainingWork) (err error) {
	// Stopped, the command would not hear that it is to end.
	defer func() { err = errors.Join(err, p.command.Process.Signal(syscall.SIGCONT)) }()
	steps, alone := warmSteps, time.Duration(0)
	for round := range work.rounds + 1 {
		for i := range t.Ways {
			w := &t.Ways[(i+round)%len(t.Ways)] // nobody always goes first
			to := syscall.SIGSTOP
			if w.looked {
				to = syscall.SIGCONT
			}
			if err := p.command.Process.Signal(to); err != nil {
				return fmt.Errorf("ndbridge inspect: %w", err)
			}
			if w.looked { // it makes up for what it has not looked at while it was stopped
				if _, err := w.program.Measure(bench.Key{}, 0, steps); err != nil {
					return fmt.Errorf("%s: %w", w.Way, err)
				}
			}
			took, err := w.program.Measure(bench.Key{}, 0, steps)
			if err != nil {
				return fmt.Errorf("%s: %w", w.Way, err)
			}
			if round > 0 { // the first is to warm up
				w.Steps = append(w.Steps, took...)
			} else if i == 0 {
				alone = took[0]
			}
		}
		steps = max(1, int(work.round/alone))
	}
	return nil
}

// packagesOf is where the packages of an interpreter are.
func packagesOf(ctx context.Context, python string) (string, error) {
	text, err := exec.CommandContext(ctx, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", python, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// looksTimed is how many looks at an array are enough to know how often it is looked at.
const looksTimed = 4

// period is the median time between two looks at an array that the page did not show until now.
func (p *page) period(ctx context.Context, name string) (time.Duration, error) {
	look := func() error { return p.look(ctx, strings.Replace(pageLooks, "weight_0_weight", name, 1)) }
	var times []float64 // the first message has those before, each of the others the next ones
	err := p.hear(ctx, name, look, func(m said) bool {
		if m.Topic == "history" && len(m.Series) > 0 && m.Series[0].Name == name {
			times = append(times, m.Series[0].Times...)
		}
		return len(times) > looksTimed
	})
	if err != nil {
		return 0, err
	}
	var between []float64
	for i := range times[1:] {
		between = append(between, times[i+1]-times[i])
	}
	return time.Duration(bench.Median(between) * float64(time.Second)), nil
}

func printTraining(out io.Writer, t *trained) {
	if t == nil {
		return
	}
	fmt.Fprintf(out, "\nA training of torch %s on %s, all weights inspected twice a second, in turns.\n\n", t.Torch, t.Device)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "inspected by\tsteps a second\tof those without\tn\t")
	for _, w := range t.Ways {
		p50 := bench.QuantilesOf(w.Steps).P50
		fmt.Fprintf(table, "%s\t%.1f\t%.3f\t%d\t\n", w.Way, 1/p50.Seconds(), w.over(t.Ways[0]), len(w.Steps))
	}
	_ = table.Flush() // it writes where all else was written
	for _, l := range t.LeftOut {
		fmt.Fprintf(out, "left out: %s: %s\n", l.Way, l.Why)
	}
}

// training holds a page to what nobody notices, and to looks as often as is said.
func (j *judge) training(t *trained) {
	if t == nil {
		return
	}
	for i, of := range []string{"of one without ndbridge", "of its own while nobody looks"} {
		speed := t.Ways[1].over(t.Ways[2*i])
		j.add("speed of a training, all weights inspected twice a second and the page open, in the median round",
			">= 0.99 "+of, fmt.Sprintf("%.3f", speed), speed >= 0.99)
	}
	j.within("time between two looks at a weight, median", t.Period, 600*time.Millisecond)
}
