package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// runner carries out "ndbridge run".
type runner struct {
	env    *environ
	target target
}

func newRun(env *environ) *cobra.Command {
	r := &runner{env: env}
	cmd := &cobra.Command{
		Use:   "run [flags] [PROGRAM] [-- ARGUMENT...]",
		Short: "Run a program as a host would, and pass on what it prints",
		Long: `run starts a program as a host would, with the plugin and the shared heap in it, and passes on what it
prints until its script ends. It shows whether a program works under ndbridge before a host is
written. The exit status is the program's, 128 and the number of the signal if one ended it, which is
said, too, and 130 if run itself was interrupted. The program's standard input is empty.`,
		Example: `  ndbridge run --script prog.py -- --fps 30
  ndbridge run -c ndbridge.hcl camera`,
		Args: func(cmd *cobra.Command, args []string) error {
			names, _ := split(cmd, args)
			switch {
			case len(names) > 1:
				return usagef("%s: run takes one program; its arguments stand behind --", names[1])
			case len(names) == 1 && (r.target.direct() || r.target.program != ""):
				return usagef("%s: the program was given already; its arguments stand behind --", names[0])
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return r.target.programs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: env.command(func(cmd *cobra.Command, args []string) error {
			names, extra := split(cmd, args)
			if len(names) == 1 {
				r.target.program = names[0]
			}
			return r.run(cmd.Context(), extra)
		}),
	}
	r.target.define(cmd)
	return cmd
}

func (r *runner) run(ctx context.Context, extra []string) error {
	level, err := r.target.level()
	if err != nil {
		return err
	}
	cfg, err := r.target.load([]string{r.target.program}, extra)
	if err != nil {
		return err
	}
	all, err := choose(cfg, r.target.program, nil)
	if err != nil {
		return err
	}
	host, err := newHost(r.env, cfg, level, r.env.stdout, r.env.stderr)
	if err != nil {
		return err
	}
	defer host.Close() //nolint:errcheck // the log says if the program had to be killed
	s, err := host.Start(ctx, all[0].program)
	if err != nil {
		return err
	}
	return r.finish(ctx, s, all[0].program)
}

// finish waits for the end of the program and makes its status ours.
func (r *runner) finish(ctx context.Context, s session, program string) error {
	err := s.Wait(ctx)
	if ctx.Err() != nil {
		return &statusError{statusInterrupted}
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, core.ErrPython) && !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	status, signal, waited := s.ExitStatus(ctx)
	switch {
	case waited != nil:
		return &statusError{statusInterrupted}
	case status < 0: // nobody knows
		return err
	case signal != 0: // else the program has said for itself what was wrong
		name := cmp.Or(unix.SignalName(signal), "a real-time signal")
		writeProblem(r.env.stderr, problem{Message: fmt.Sprintf("run %s: the program was killed by signal %d (%s)", program, signal, name)})
	}
	return &statusError{status}
}
