package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// training is a script that the host does not start, and a variable of its function main.
const (
	training = "examples/demo/training.py"
	weights  = "main().weights"
)

// visit attaches to a training that runs already, looks at its weights twice, and leaves it running.
func visit(ctx context.Context, s *show, host *hostplugin.Host, command, python string) error {
	name := fmt.Sprintf("demo-%d", os.Getpid())
	program := exec.CommandContext(ctx, command, "run", "--share", "--name", name, "--", python, training)
	program.Stdout, program.Stderr = os.Stderr, os.Stderr
	if err := program.Start(); err != nil {
		return fmt.Errorf("%w (make builds it)", err)
	}
	defer func() {
		_ = program.Process.Signal(os.Interrupt) // it has no end of its own
		_ = program.Wait()
	}()
	session, err := attach(ctx, host, name)
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
	s.visited(program.Process, v, before, after)
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
