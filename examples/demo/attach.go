package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// script is what the host does not start, and weights a variable of its function main.
const (
	script  = "examples/demo/training.py"
	weights = "main().weights"
)

// training is a script that runs, and to which hosts come by a name.
type training struct {
	*exec.Cmd

	name string
}

// train starts it. It has no end of its own.
func train(ctx context.Context, command, python string) (*training, error) {
	name := "demo-" + strings.ToLower(rand.Text()[:8])
	t := &training{exec.CommandContext(ctx, command, "run", "--share", "--name", name, "--", python, script), name}
	t.Stdout, t.Stderr = os.Stderr, os.Stderr
	if err := t.Start(); err != nil {
		return nil, fmt.Errorf("%w (make builds it)", err)
	}
	return t, nil
}

func (t *training) end() {
	_ = t.Process.Signal(os.Interrupt) // it may have ended by the Ctrl-C that ends the demo
	_ = t.Wait()                       // its status is that of the signal
}

// visit attaches to the training, looks at its weights twice, and leaves it running.
func visit(ctx context.Context, s *show, host *hostplugin.Host, t *training) error {
	session, err := attach(ctx, host, t.name)
	if err != nil {
		return err
	}
	defer session.Close() //nolint:errcheck // the program's arrays were looked at
	v, err := session.View(ctx, weights)
	if err != nil {
		return err
	}
	before, err := mean(v)
	if err != nil {
		return err
	}
	<-time.After(time.Second)
	after, err := mean(v)
	if err != nil {
		return err
	}
	if err := session.Close(); err != nil {
		return err
	}
	s.visited(t.Process, v, before, after)
	return nil
}

// attach waits until the program, which has just been started, lets hosts come to it.
func attach(ctx context.Context, host *hostplugin.Host, name string) (*hostplugin.Session, error) {
	for {
		session, err := host.Attach(ctx, hostplugin.Name(name))
		if !errors.Is(err, core.ErrNotFound) || ctx.Err() != nil {
			return session, err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// mean reads the array in place, while the program writes to it.
func mean(v *core.View) (float64, error) {
	all, err := core.Slice[float64](v)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all)), nil
}
