// Command monitor watches the weights of a training, and ends it when one is not a number. The README beside this file says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/ndbridge/ndbridge/bridges/safetensors"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/stats"
)

func main() {
	m := monitor{out: os.Stdout}
	flag.DurationVar(&m.every, "every", 200*time.Millisecond, "how often to look")
	flag.StringVar(&m.weights, "weights", "main().model.**", "the arrays to look at")
	flag.StringVar(&m.step, "step", "main().step", "the number of the step")
	flag.StringVar(&m.file, "save", "last-good.safetensors", "where the last good weights go")
	python := flag.String("python", "python3", "the interpreter")
	flag.Parse()
	script := "training.py"
	if flag.NArg() > 0 {
		script = flag.Arg(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := m.run(ctx, hostplugin.Program{Script: script, Python: *python, Stdout: os.Stdout, Stderr: os.Stderr}); err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends, and the signal with it
	}
}

// errBroken is the end of a training whose weights are no numbers any more.
var errBroken = errors.New("the training is broken")

// monitor looks at the weights of a training again and again.
type monitor struct {
	every               time.Duration
	weights, step, file string
	out                 io.Writer
}

// look is what the weights were like at one moment.
type look struct {
	step   int
	copies map[string]*core.View
	broken []string // what is said of each that has NaN or infinities
}

func (m *monitor) run(ctx context.Context, training hostplugin.Program) error {
	session, err := hostplugin.Run(ctx, training)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // ends the training; what failed was returned before
	weights, err := session.Group(m.weights)
	if err != nil {
		return err
	}
	var good look
	defer func() { good.close() }()
	for tick := time.NewTicker(m.every); ; {
		select {
		case <-tick.C:
		case <-session.Done():
			return session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := m.look(ctx, session, weights)
		switch {
		case err == nil && len(now.broken) == 0:
			good.close()
			good = now
			continue
		case err == nil:
			err = m.report(ctx, &now, &good)
		}
		now.close()
		if !errors.Is(err, core.ErrNotFound) { // there is no model yet
			return err
		}
	}
}

func (l *look) close() {
	for _, v := range l.copies {
		_ = v.Close() // of a copy: it does not fail
	}
}

// look copies the weights as they are now, and sums the copies up: so that what is found good is what will be saved.
func (m *monitor) look(ctx context.Context, session *hostplugin.Session, weights *hostplugin.Group) (now look, err error) {
	if _, err := weights.Refresh(ctx, hostplugin.AllowCopy(), hostplugin.NoWait()); err != nil {
		return now, err
	}
	now.copies = make(map[string]*core.View)
	for name, v := range weights.Views() {
		kept, err := stats.Keep(ctx, v)
		if err != nil {
			return now, err
		}
		now.copies[name] = kept
		sum, err := stats.Of(ctx, kept, nil)
		if err != nil {
			return now, err
		}
		if bad := sum.Len - sum.Finite(); bad > 0 {
			now.broken = append(now.broken, fmt.Sprintf("%s: %d of %d are NaN or infinite", name, bad, sum.Len))
		}
	}
	step, err := session.Value(ctx, m.step)
	if err != nil {
		return now, err
	}
	return now, errors.Join(step.Decode(&now.step), step.Close())
}

// report says what is broken, and saves what was good last.
func (m *monitor) report(ctx context.Context, now, good *look) error {
	if _, err := fmt.Fprintf(m.out, "step %d: %d of %d weights are broken\n", now.step, len(now.broken), len(now.copies)); err != nil {
		return err
	}
	slices.Sort(now.broken)
	for _, text := range now.broken {
		if _, err := fmt.Fprintln(m.out, " ", text); err != nil {
			return err
		}
	}
	if good.copies == nil {
		return fmt.Errorf("%w from the first look on", errBroken)
	}
	file, err := os.Create(m.file)
	if err != nil {
		return err
	}
	err = safetensors.Write(ctx, file, maps.All(good.copies), map[string]string{"step": strconv.Itoa(good.step)})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(m.out, "those of step %d are in %s\n", good.step, m.file)
	return errors.Join(errBroken, err)
}
