package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// lister carries out "ndbridge ls".
type lister struct {
	env    *environ
	target target
	bounds bounds
	json   bool
	deep   bool
	limit  int // of a deep list
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

With --deep it lists all arrays that these variables lead to, by way of attributes, items, modules of PyTorch and modules of the program's own, without
running code of the program's: how they would be had, and what else they are called. An array is listed once.

With --json it prints one object a line: name, framework, published, dtype, tag, shape, strides (bytes),
device, read_only, nbytes; or name and error for an array that cannot be viewed. That is no failure. With --deep there
are also, route and reason, too, and at the end more and partial if anything was left out.`,
		Example: `  ndbridge ls --script prog.py
  ndbridge ls --module pkg.train --python .venv/bin/python -- --epochs 1
  ndbridge ls --attach trainer --deep
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
	cmd.Flags().BoolVar(&l.deep, "deep", false, "list all arrays that variables lead to")
	cmd.Flags().IntVar(&l.limit, "limit", 1000, "with --deep: list at most `N` arrays")
	l.bounds.define(cmd.Flags())
	return cmd
}

func (l *lister) run(ctx context.Context, extra []string) error {
	if err := l.bounds.check(); err != nil {
		return err
	}
	if l.limit < 1 {
		return usagef("--limit %d: it must be positive", l.limit)
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
	if l.deep {
		return l.listDeep(ctx, s)
	}
	table := tabwriter.NewWriter(l.env.stdout, 0, 0, 2, ' ', 0)
	for e, err := range s.Arrays(ctx) {
		if err != nil {
			return found, err
		}
		l.env.stderr.Stop()
		found++
		if err := l.row(table, e, listingOf(e)); err != nil {
			return found, err
		}
	}
	return found, table.Flush()
}

// listDeep is list for all arrays that anything leads to.
func (l *lister) listDeep(ctx context.Context, s session) (int, error) {
	searcher, ok := s.Producer().(contract.Searcher)
	if !ok {
		return 0, &core.Error{Op: "list", Kind: core.ErrUnsupported, Err: errors.New("the program cannot be searched")}
	}
	found, err := searcher.Search(ctx, contract.Search{Pattern: names.Every, Limit: l.limit})
	if err != nil {
		return 0, err
	}
	l.env.stderr.Stop()
	table := tabwriter.NewWriter(l.env.stdout, 0, 0, 2, ' ', 0)
	for _, e := range found.Entries {
		if err := l.row(table, e, deepListing{listingOf(e), append([]string{}, e.Also...), e.Route, e.Reason}); err != nil {
			return len(found.Entries), err
		}
	}
	if err := table.Flush(); err != nil || found.More == 0 && !found.Partial {
		return len(found.Entries), err
	}
	if l.json {
		return len(found.Entries), writeJSON(l.env.stdout, leftOut{found.More, found.Partial})
	}
	text := "and other arrays in what was not looked through"
	if found.More > 0 {
		text = fmt.Sprintf("and %d more; --limit says how many are listed", found.More)
	}
	_, err = fmt.Fprintln(l.env.stdout, text)
	return len(found.Entries), err
}

// row prints one array: as record, or in a table.
func (l *lister) row(table io.Writer, e contract.Entry, record any) (err error) {
	switch {
	case l.json && e.Err != nil:
		return writeJSON(l.env.stdout, failure{e.Name, explain(e.Err)})
	case l.json:
		return writeJSON(l.env.stdout, record)
	case e.Err != nil:
		message := strings.TrimPrefix(explain(e.Err).Message, "list "+e.Name+": ")
		_, err = fmt.Fprintf(table, "%s\t-\t-\t-\t%s\n", prose.Line(e.Name), prose.Line(message))
		return err
	}
	dtype := e.Layout.DType().String()
	if tag := e.Layout.Tag(); tag != "" {
		dtype = tag
	}
	_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s%s\n",
		prose.Line(e.Name), prose.Line(e.Framework), prose.Line(dtype), render.Shape(e.Layout), sizeText(e.Layout.NBytes()), marks(e))
	return err
}

// marks says in words what is special about an array.
func marks(e contract.Entry) string {
	const enough = 3
	text := ""
	if e.Published {
		text += "  published"
	}
	if e.Layout.ReadOnly() {
		text += "  read-only"
	}
	switch {
	case e.Route != "":
		text += "  shared"
	case e.Reason != "":
		text += "  copied: " + string(e.Reason)
	}
	if n := len(e.Also); n > 0 {
		text += "  also " + prose.Line(strings.Join(e.Also[:min(n, enough)], ", "))
		if n > enough {
			text += fmt.Sprintf(" and %d other names", n-enough)
		}
	}
	return text
}
