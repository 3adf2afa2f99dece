package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// lister carries out "ndbridge ls".
type lister struct {
	env     *environ
	target  target
	bounds  bounds
	json    bool
	deep    bool
	numbers bool
	limit   int // of a deep list
}

func newList(env *environ) *cobra.Command {
	l := &lister{env: env, target: target{attaches: true}}
	cmd := &cobra.Command{
		Use:   "ls [flags] [-- ARGUMENT...]",
		Short: "List the arrays of a program",
		Long: `ls runs a program, or looks at one that runs already (--attach), and lists the arrays that it has: what it published with ndbridge.publish, its
global names, the variables of functions that run on its main thread, such as main().x, and all that these lead to, by way of attributes, items,
modules of PyTorch and modules of the program's own, without running code of the program's: what it is, how it would be had, and what
else it is called. An array is listed once.
It waits until the script has ended, or for --patience if it goes on. When a function has ended, its
variables are gone.

On a terminal it shows a tree of names, in the order in which the program has them, and the processes that come from the program. Of many parts of one
thing it shows some. Elsewhere, and with --deep, it prints a line for each array, with its whole name.

With --json it prints one object a line: name, framework, published, dtype, tag, shape, strides (bytes),
device, read_only, nbytes; or name and error for an array that cannot be viewed. That is no failure. These are the variables alone. With --deep there
are all arrays, with also, route and reason, too, and at the end more and partial if anything was left out.

With --numbers it lists Python's own numbers, too, each with its value of now: what is exactly an int of at most 64 bits or a float, but
no bool, and no instance of a class of the program's. NumPy's numbers are arrays without axes, and are listed in any case. An object that
has more than 64 numbers, such as a list, tells of none of them. With --json a number has name, type, value (null if it is not finite) and text.`,
		Example: `  ndbridge ls --script prog.py
  ndbridge ls --module pkg.train --python .venv/bin/python -- --epochs 1
  ndbridge ls --attach trainer --deep
  ndbridge ls --attach trainer --numbers
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
	cmd.Flags().BoolVar(&l.deep, "deep", false, "list a line for each array, and with --json all arrays that variables lead to")
	cmd.Flags().BoolVar(&l.numbers, "numbers", false, "list Python's own numbers, too, with their values")
	cmd.Flags().IntVar(&l.limit, "limit", 1000, "list at most `N` arrays, and as many numbers; of arrays with --json only with --deep")
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
	found, err := l.list(ctx, s, program)
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
func (l *lister) list(ctx context.Context, s session, program string) (int, error) {
	entries, err := looks.Variables(ctx, s)
	found := contract.Found{Entries: entries}
	if err == nil && (l.deep || l.numbers || !l.json) {
		all, failed := looks.Search(ctx, s, contract.Search{Pattern: names.Every, Limit: l.limit, Numbers: l.numbers})
		switch {
		case failed == nil && (l.deep || !l.json):
			found = looks.Join(all, entries, l.limit)
		case failed == nil:
			found.Numbers = slices.DeleteFunc(all.Numbers, isPart)
		case l.deep || !errors.Is(failed, core.ErrUnsupported):
			err = failed
		}
	}
	if err != nil {
		return 0, err
	}
	l.env.stderr.Stop()
	width, terminal := render.Columns(l.env.stdout)
	switch {
	case len(found.Entries)+len(found.Numbers) == 0:
	case terminal && !l.deep && !l.json:
		err = l.tree(ctx, s, program, found, width)
	default:
		err = l.lines(found)
	}
	if err != nil {
		return 0, err
	}
	return len(found.Entries) + len(found.Numbers), l.rest(found)
}

// lines prints an array or a number a line.
func (l *lister) lines(found contract.Found) error {
	slices.SortStableFunc(found.Entries, func(a, b contract.Entry) int { return cmp.Compare(a.Name, b.Name) })
	table := tabwriter.NewWriter(l.env.stdout, 0, 0, 2, ' ', 0)
	for _, e := range found.Entries {
		var err error
		switch {
		case l.json && e.Err != nil:
			err = writeJSON(l.env.stdout, failure{e.Name, explain(e.Err)})
		case l.json && l.deep:
			err = writeJSON(l.env.stdout, deepListing{listingOf(e), append([]string{}, e.Also...), e.Route, e.Reason})
		case l.json:
			err = writeJSON(l.env.stdout, listingOf(e))
		case e.Err != nil:
			err = l.line(table, prose.Line(e.Name), "-", "-", "-", messageOf(e))
		default:
			err = l.line(table, prose.Line(e.Name), prose.Line(e.Framework), dtypeOf(e), render.Shape(e.Layout), sizeText(e.Layout.NBytes())+marks(e))
		}
		if err != nil {
			return err
		}
	}
	if err := l.numberLines(table, found.Numbers); err != nil {
		return err
	}
	return table.Flush()
}

// maxCell is how long what stands in a column may be. What is longer makes no column wider.
const maxCell = 100

// line prints a line of a table, or one that stands alone.
func (l *lister) line(table *tabwriter.Writer, cells ...string) error {
	if slices.ContainsFunc(cells[:len(cells)-1], func(cell string) bool { return len(cell) > maxCell }) {
		if err := table.Flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(l.env.stdout, strings.Join(cells, "  "))
		return err
	}
	_, err := fmt.Fprintln(table, strings.Join(cells, "\t"))
	return err
}

// rest says what was left out.
func (l *lister) rest(found contract.Found) (err error) {
	switch {
	case found.More == 0 && !found.Partial:
	case l.json:
		err = writeJSON(l.env.stdout, leftOut{found.More, found.Partial})
	case found.More > 0:
		_, err = fmt.Fprintf(l.env.stdout, "and %d more; --limit says how many are listed\n", found.More)
	default:
		_, err = fmt.Fprintln(l.env.stdout, "and others in what was not looked through")
	}
	return err
}

// dtypeOf says what the elements of an array are.
func dtypeOf(e contract.Entry) string {
	if tag := e.Layout.Tag(); tag != "" {
		return prose.Line(tag)
	}
	return e.Layout.DType().String()
}

// messageOf says why an array cannot be viewed.
func messageOf(e contract.Entry) string {
	return prose.Line(strings.TrimPrefix(explain(e.Err).Message, "list "+e.Name+": "))
}

// marks says in words what is special about an array.
func marks(e contract.Entry) string {
	const enough = 3
	text := ""
	if device := e.Layout.Device(); device.Kind != core.CPU {
		text += "  " + device.String()
	}
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
