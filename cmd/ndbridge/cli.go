package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// The exit statuses. Those of "run" are the program's own.
const (
	statusOK          = 0
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130 // as shells report SIGINT
)

// carryOut carries out one command line and gives the exit status: 0, 1 if something asked for could not be
// had, 2 if the command line makes no sense, 130 if it was interrupted, and with "run" the program's.
func carryOut(args []string, stdout, stderr io.Writer) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	ends = slices.DeleteFunc(ends, signal.Ignored) // by nohup, or in the background of a script
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// The first Ctrl-C ends programs in order; a second one has the usual effect.
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, args, stdout, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	env := newEnviron(stdout, stderr)
	defer env.stderr.Stop()
	root := newRoot(env) //nolint:contextcheck // cobra hands it to the commands
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	env.stderr.Stop()
	if err == nil {
		return statusOK
	}
	status, said := errors.AsType[*statusError](err)
	switch {
	case ctx.Err() != nil:
		if !said {
			env.report(err)
		}
		return statusInterrupted
	case said:
		return status.code
	}
	if usage, ok := errors.AsType[*usageError](err); ok || !env.running {
		if ok {
			err = usage.err
		}
		if slices.Index(args, "flight") == 0 { // of a module of its own, which needs Arrow
			err = fmt.Errorf("%w: Arrow Flight has a command of its own, ndbridge-flight; go install "+
				"github.com/ndbridge/ndbridge/bridges/arrow/cmd/ndbridge-flight@latest installs it", err)
		}
		_, _ = fmt.Fprintf(env.stderr, "%s: %s\nRun '%s --help' to see what can be said.\n",
			cmd.CommandPath(), prose.Text(err.Error()), cmd.CommandPath())
		return statusUsage
	}
	env.report(err)
	return statusFailed
}

// usageError says that the command line makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// statusError ends the process with a status; what there is to say has been said.
type statusError struct{ code int }

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments", cmd.Name())
	}
	return nil
}

// command wraps what a command does. What fails from there on is not the form of the command line.
func (e *environ) command(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		e.running = true
		return f(cmd, args)
	}
}

// newRoot makes the tree of commands.
func newRoot(env *environ) *cobra.Command {
	root := &cobra.Command{
		Use:   "ndbridge",
		Short: "Look at the arrays of Python programs, in place",
		Long: `ndbridge runs a Python program in your own interpreter and looks at its arrays: the very pages that
the program wrote, without a copy. Nothing is installed into the Python environment, and the program
needs no change.`,
		Example: `  ndbridge view --script prog.py frame           a summary and a small picture
  ndbridge view --script prog.py --png f.png frame
  ndbridge ls --script prog.py                   all arrays of a program
  ndbridge call --script prog.py f --in x.npy    what a function gives for an array of a file
  ndbridge view -c ndbridge.hcl camera/frame     a program of a configuration`,
		Version:       wire.Release,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newView(env), newList(env), newInspect(env), newWatch(env), newRun(env), newPs(env), newJupyter(env), newCall(env), newDoctor(env), newBench(env), newQuirks(env), newVersion(env))
	return root
}
