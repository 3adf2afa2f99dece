package main

import (
	"context"
	_ "embed" // the Python program
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm"
)

//go:embed frameworks.py
var frameworksScript string

const (
	// handoffSpin is the default of a program.
	handoffSpin = 50 * time.Microsecond

	// pingPongVariable makes this program the other side of the bare ring: its value is the spin.
	pingPongVariable = "NDBENCH_PINGPONG"
	pingPongFD       = 3
)

// handoffRow is a view by one way to ask for it, or the bare ring, of which there is no framework.
type handoffRow struct {
	Way         string    `json:"way"`
	Framework   string    `json:"framework,omitempty"`
	Bytes       int       `json:"bytes,omitempty"`
	View        quantiles `json:"view"`
	Allocations float64   `json:"host_allocations"`
}

// measureHandoff compares the ways to ask for a view, and the bare ring as the limit, in turns.
func measureHandoff(ctx context.Context, opts options, out io.Writer) (_ []handoffRow, err error) {
	fmt.Fprintln(out, "measuring the hand-off")
	dir, err := os.MkdirTemp("", "ndbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "frameworks.py")
	if err := os.WriteFile(script, []byte(frameworksScript), 0o600); err != nil {
		return nil, err
	}
	var calls []*handoffCall
	for _, spin := range []time.Duration{handoffSpin, 0} {
		name := "bare ring, spinning"
		if spin == 0 {
			name = "bare ring, asleep"
		}
		call, end, err := pingPong(ctx, name, spin)
		if err != nil {
			return nil, err
		}
		defer func() { end() }()
		calls = append(calls, call)
	}
	for _, way := range []struct {
		name string
		set  func(p *hostplugin.Program)
	}{
		{"ring, spinning", func(p *hostplugin.Program) { p.HandoffSpin = new(handoffSpin) }},
		{"ring, asleep", func(p *hostplugin.Program) { p.HandoffSpin = new(time.Duration(0)) }},
		{"grpc", func(p *hostplugin.Program) { p.Handoff = new(false) }},
	} {
		program := hostplugin.Program{Name: "frameworks", Python: opts.python, Script: script}
		way.set(&program)
		for _, size := range opts.handoffSizes {
			program.Args = append(program.Args, strconv.Itoa(size))
		}
		more, end, err := handoffCalls(ctx, opts, program, way.name)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		calls = append(calls, more...)
	}
	return interleaveHandoff(ctx, opts.handoffRounds, calls)
}

// handoffCall is one thing that is measured.
type handoffCall struct {
	row  handoffRow
	do   func(ctx context.Context) error // what is timed
	tidy func() error                    // what is not
	took []time.Duration
}

// handoffCalls starts a program and gives a call for each of its arrays.
func handoffCalls(ctx context.Context, opts options, p hostplugin.Program, way string) ([]*handoffCall, func() error, error) {
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{p}},
		hostplugin.WithLibDir(opts.lib), hostplugin.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, err
	}
	session, err := host.Start(ctx, p.Name)
	if err == nil {
		err = session.Wait(ctx)
	}
	var calls []*handoffCall
	for _, framework := range []string{"numpy", "torch", "jax"} {
		for _, size := range opts.handoffSizes {
			if err != nil {
				return nil, nil, errors.Join(err, host.Close())
			}
			var source *hostplugin.Source
			source, err = session.Source(framework + strconv.Itoa(size))
			call := &handoffCall{row: handoffRow{Way: way, Framework: framework, Bytes: size}}
			call.do = func(ctx context.Context) error {
				view, err := source.View(ctx)
				if err == nil {
					call.tidy = view.Close
				}
				return err
			}
			calls = append(calls, call)
		}
	}
	return calls, host.Close, err
}

// interleaveHandoff measures all in turns, a few calls at a time: who spins is measured spinning.
func interleaveHandoff(ctx context.Context, rounds int, calls []*handoffCall) ([]handoffRow, error) {
	const turn = 20
	for range rounds {
		for _, c := range calls {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range turn {
				start := time.Now()
				if err := c.do(ctx); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", c.row.Way, c.row.Framework, err)
				}
				c.took = append(c.took, time.Since(start))
				if c.tidy != nil {
					if err := c.tidy(); err != nil {
						return nil, err
					}
				}
			}
			runtime.ReadMemStats(&after)
			c.row.Allocations += float64(after.Mallocs-before.Mallocs) / float64(turn*rounds)
		}
	}
	rows := make([]handoffRow, 0, len(calls))
	for _, c := range calls {
		c.row.View = quantilesOf(c.took)
		rows = append(rows, c.row)
	}
	return rows, nil
}

// pingPong asks a process that does nothing but answer.
func pingPong(ctx context.Context, name string, spin time.Duration) (*handoffCall, func(), error) {
	file, err := shm.Create("pingpong", ring.Size(1))
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	memory, err := shm.Map(file, ring.Size(1), true)
	if err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	other := exec.CommandContext(ctx, exe)
	other.Env = append(os.Environ(), pingPongVariable+"="+spin.String())
	other.ExtraFiles = []*os.File{file}
	ready, err := other.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	life, err := other.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := other.Start(); err != nil {
		return nil, nil, err
	}
	end := func() {
		_, _ = life.Close(), other.Wait() // it has answered all
		_ = memory.Close()
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		end()
		return nil, nil, err
	}
	client, err := ring.NewClient(memory.Bytes(), spin, time.Second, nil)
	if err != nil {
		end()
		return nil, nil, err
	}
	request, answer := make([]byte, 16), make([]byte, ring.MaxAnswer)
	call := &handoffCall{row: handoffRow{Way: name}}
	call.do = func(ctx context.Context) error {
		_, err := client.Call(ctx, request, answer)
		return err
	}
	return call, func() { client.Close(); end() }, nil
}

// answerPings is the other side: it answers until its standard input ends.
func answerPings(spin string) error {
	budget, err := time.ParseDuration(spin)
	if err != nil {
		return err
	}
	memory, err := shm.Map(os.NewFile(pingPongFD, "ring"), ring.Size(1), true)
	if err != nil {
		return err
	}
	server, err := ring.NewServer(memory.Bytes(), 1, budget, func(request, answer []byte) int {
		return copy(answer, request)
	})
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString("!")
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	server.Close()
	return errors.Join(err, memory.Close())
}

func printHandoff(out io.Writer, rows []handoffRow) {
	fmt.Fprint(out, "\nThe hand-off of a view by each way to ask for it, and the ring alone, which is the limit.\n\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "way\tframework\tsize\tp50\tp99\tn\tallocations\t")
	for _, row := range rows {
		size := ""
		if row.Bytes > 0 {
			size = bytesText(row.Bytes)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%.1f\t\n", row.Way, row.Framework, size,
			timeText(row.View.P50), timeText(row.View.P99), row.View.N, row.Allocations)
	}
	_ = table.Flush() // it writes where all else was written
}
