package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// runner carries out "ndbridge run".
type runner struct {
	env    *environ
	target target
	shares bool
	name   string // of the programs that share, instead of their scripts'
}

func newRun(env *environ) *cobra.Command {
	r := &runner{env: env}
	cmd := &cobra.Command{
		Use:   "run [flags] [PROGRAM] [-- ARGUMENT...]",
		Short: "Run a program as a host would, or a command whose Pythons let hosts come to them",
		Long: `run starts a program as a host would, with the plugin and the shared heap in it, and passes on what it
prints until its script ends. It shows whether a program works under ndbridge before a host is
written. The exit status is the program's, 128 and the number of the signal if one ended it, which is
said, too, and 130 if run itself was interrupted. The program's standard input is empty.

With --share it becomes a command instead, of whatever kind: a launcher, a server, a shell script. All
Pythons that run below it let hosts come to them, by the names that ndbridge ps lists: those of their scripts
and modules, and the rank among the processes of a launcher, such as train.2. Nothing else changes for
the command; what it prints, its signals and its exit status are its own.`,
		Example: `  ndbridge run --script prog.py -- --fps 30
  ndbridge run -c ndbridge.hcl camera
  ndbridge run --share -- torchrun --nproc-per-node 4 train.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			names, extra := split(cmd, args)
			switch {
			case r.shares:
				return r.checkShare(cmd, len(names)+len(extra))
			case r.name != "":
				return usagef("--name: that is for --share; a program of a configuration has a name")
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
			if r.shares {
				return r.share(args)
			}
			names, extra := split(cmd, args)
			if len(names) == 1 {
				r.target.program = names[0]
			}
			return r.run(cmd.Context(), extra)
		}),
	}
	r.target.define(cmd)
	cmd.Flags().BoolVar(&r.shares, "share", false, "run a command, which stands behind --, and let hosts come to its Pythons")
	cmd.Flags().StringVar(&r.name, "name", "", "what hosts call these, instead of the `name` of the script or the module")
	return cmd
}

// checkShare checks the command line of run --share.
func (r *runner) checkShare(cmd *cobra.Command, words int) error {
	const longest = 64
	other := ""
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "share" && f.Name != "name" && f.Name != "log-level" {
			other = f.Name
		}
	})
	switch {
	case other != "":
		return usagef("--share and --%s: that concerns programs that run starts as a host does; the command with its options stands behind --", other)
	case words == 0:
		return usagef("--share: which command? It stands behind --")
	case r.name != "" && (programName("", r.name) != r.name || len(r.name) > longest):
		return usagef("--name %s: expected letters, digits, '_', '-' and '.', up to %d", r.name, longest)
	}
	return nil
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
