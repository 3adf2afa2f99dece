package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// lister carries out "ndbridge ls".
type lister struct {
	env    *environ
	target target
	bounds bounds
	json   bool
}

func newList(env *environ) *cobra.Command {
	l := &lister{env: env, target: target{attaches: true}}
	cmd := &cobra.Command{
		Use:   "ls [flags] [-- ARGUMENT...]",
		Short: "List the arrays of a program",
		Long: `ls runs a program, or looks at one that runs already (--attach), and lists the arrays that it has: those that it published with ndbridge.publish, those
among its global names, and those in variables of functions that run on its main thread, such as main().x.
It waits until the script has ended, or for --patience if it goes on. When a function has ended, its
variables are gone.

With --json it prints one object a line: name, framework, published, dtype, tag, shape, strides (bytes),
device, read_only, nbytes; or name and error for an array that cannot be viewed. That is no failure.`,
		Example: `  ndbridge ls --script prog.py
  ndbridge ls --module pkg.train --python .venv/bin/python -- --epochs 1
  ndbridge ls --attach trainer
  ndbridge ls -c ndbridge.hcl --program camera`,
		Args: func(cmd *cobra.Command, args []string) error {
			if names, _ := split(cmd, args); len(names) > 0 {
				return usagef("%s: ls takes no names; arguments of the program stand behind --%s", names[0], scriptAmong(names))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              env.command(func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args) }),
	}
	l.target.define(cmd)
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object a line")
	l.bounds.define(cmd.Flags())
	return cmd
}

func (l *lister) run(ctx context.Context, extra []string) error {
	if err := l.bounds.check(); err != nil {
		return err
	}
	level, err := l.target.level()
	if err != nil {
		return err
	}
	cfg, err := l.target.load(nil, extra)
	if err != nil {
		return l.fail(err)
	}
	all, err := choose(cfg, l.target.program, nil)
	if err != nil {
		return err
	}
	look, err := newLooker(l.env, cfg, &l.target, l.bounds, level)
	if err != nil {
		return l.fail(err)
	}
	defer look.close()
	ctx, cancel := context.WithTimeout(ctx, l.bounds.timeout)
	defer cancel()
	program := all[0].program
	s, runs, err := look.open(ctx, program, nil)
	if err != nil {
		return l.fail(err)
	}
	found, err := l.list(ctx, s)
	switch {
	case err != nil:
		return l.fail(look.deadline(err, program, ""))
	case found == 0 && !l.json:
		return look.noArrays(program, runs)
	}
	return nil
}

// fail is the way of an error that concerns the program.
func (l *lister) fail(err error) error {
	if _, usage := err.(*usageError); usage || !l.json { //nolint:errorlint // not one of ours that was wrapped
		return err
	}
	l.env.stderr.Stop()
	if err := writeJSON(l.env.stdout, failure{"", explain(err)}); err != nil {
		return err
	}
	return &statusError{statusFailed}
}

// list prints all arrays, and says how many there are.
func (l *lister) list(ctx context.Context, s session) (found int, err error) {
	table := tabwriter.NewWriter(l.env.stdout, 0, 0, 2, ' ', 0)
	for e, err := range s.Arrays(ctx) {
		if err != nil {
			return found, err
		}
		l.env.stderr.Stop()
		found++
		switch {
		case l.json && e.Err != nil:
			err = writeJSON(l.env.stdout, failure{e.Name, explain(e.Err)})
		case l.json:
			err = writeJSON(l.env.stdout, listingOf(e))
		case e.Err != nil:
			message := strings.TrimPrefix(explain(e.Err).Message, "list "+e.Name+": ")
			_, err = fmt.Fprintf(table, "%s\t-\t-\t-\t%s\n", prose.Line(e.Name), prose.Line(message))
		default:
			marks := ""
			if e.Published {
				marks += "  published"
			}
			if e.Layout.ReadOnly() {
				marks += "  read-only"
			}
			name := e.Layout.DType().String()
			if tag := e.Layout.Tag(); tag != "" {
				name = tag
			}
			_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s%s\n",
				prose.Line(e.Name), prose.Line(e.Framework), prose.Line(name), render.Shape(e.Layout), sizeText(e.Layout.NBytes()), marks)
		}
		if err != nil {
			return found, err
		}
	}
	return found, table.Flush()
}
