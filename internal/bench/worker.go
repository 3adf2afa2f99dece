package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// Worker is a process that measures ways by itself, of which it is asked by lines of JSON (see ways.py).
type Worker struct {
	Versions map[string]string // of the frameworks that it has
	Missing  map[string]string // why it has not the others

	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// StartWays starts the worker for the usual ways of Python, from the folder with the scripts.
func StartWays(ctx context.Context, python, dir string, stderr io.Writer) (*Worker, error) {
	return StartWorker(exec.CommandContext(ctx, python, filepath.Join(dir, "ways.py")), stderr)
}

// StartWorker starts a worker, and waits until it has said what it has.
func StartWorker(process *exec.Cmd, stderr io.Writer) (*Worker, error) {
	w := &Worker{process: process}
	process.Stderr = stderr
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if w.in, err = process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", process.Path, err)
	}
	var has struct{ Versions, Missing map[string]string }
	if err := w.read(&has); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", process.Path, err), w.Close())
	}
	w.Versions, w.Missing = has.Versions, has.Missing
	return w, nil
}

// Close ends the process.
func (w *Worker) Close() error { return errors.Join(w.in.Close(), w.process.Wait()) }

// Turn measures a way in turns of so many calls, without the first ones.
func (w *Worker) Turn(k Key, warm, count int) Turn {
	return func(context.Context) ([]time.Duration, error) { return w.Measure(k, warm, count) }
}

// Measure makes so many calls, and does not count the first ones.
func (w *Worker) Measure(k Key, warm, count int) ([]time.Duration, error) {
	line, err := json.Marshal(struct {
		Key
		Warm  int `json:"warm"`
		Count int `json:"count"`
	}{k, warm, count})
	if err != nil {
		return nil, err
	}
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	var answer struct {
		Took  []time.Duration
		Error string
	}
	if err := w.read(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Took, nil
}

func (w *Worker) read(value any) error {
	line, err := w.out.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return errors.New("it has ended")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, value)
}
