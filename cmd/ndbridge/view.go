package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// view carries out "ndbridge view".
type view struct {
	env    *environ
	target target
	bounds bounds
	files  files

	json     bool
	copy     string
	writable bool
	colour   string

	shown int // arrays so far
}

func newView(env *environ) *cobra.Command {
	v := &view{env: env, target: target{attaches: true}}
	cmd := &cobra.Command{
		Use:   "view [flags] [PROGRAM/]NAME... [-- ARGUMENT...]",
		Short: "Show arrays of a program: what they are, where they lie, and a picture of the values",
		Long: `view runs a program, or attaches to one that runs already (--attach), and looks at arrays in its memory. A NAME is a Python name with attributes and
items behind it (frame, model.weight, batch["x"], frames[::2, 10:]), or what the program published with
ndbridge.publish. Without a NAME it shows all arrays.

It waits until the script has ended or has published the arrays. A script that goes on is looked at
as soon as the name exists and --patience is over; a program that runs already (--attach) has --patience
to make it. Of several names, those that exist come first. What the program prints goes to standard error.

With --json, standard output has one object a line for each array: name, framework, dtype, tag, shape,
strides (bytes), device, read_only, route, copied, reason, quirks, nbytes, address_shared (the pages are
the program's own); or, if it could not be had, name and error (category, message, remedy, quirk).

The exit status is 0, 1 if an array could not be had, and 2 if the command line makes no sense.`,
		Example: `  ndbridge view --script prog.py frame
  ndbridge view --script prog.py --python .venv/bin/python 'batch["x"]' model.weight
  ndbridge view --script prog.py --png '{name}.png' -- --fps 30
  ndbridge view --attach trainer 'main().loss'
  ndbridge view -c ndbridge.hcl camera/frame lidar/points
  ndbridge view --script prog.py --json frame | jq .route`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(cmd *cobra.Command, args []string) error {
			names, extra := split(cmd, args)
			return v.run(cmd.Context(), names, extra)
		}),
	}
	v.target.define(cmd)
	f := cmd.Flags()
	f.BoolVar(&v.json, "json", false, "print one JSON object a line")
	v.files.define(f)
	f.StringVar(&v.copy, "copy", "", "whether memory that cannot be shared may be copied: never, if-needed (default: as configured)")
	f.BoolVar(&v.writable, "writable", false, "ask for memory that could be written")
	f.StringVar(&v.colour, "color", string(render.Auto), "draw in colours: auto, always, never")
	v.bounds.define(f)
	mustComplete(cmd.RegisterFlagCompletionFunc("copy",
		cobra.FixedCompletions([]string{"never", "if-needed"}, cobra.ShellCompDirectiveNoFileComp)))
	mustComplete(cmd.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// split takes apart what stands before and behind "--".
func split(cmd *cobra.Command, args []string) (names, extra []string) {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		return args[:dash], args[dash:]
	}
	return args, nil
}

func (v *view) options() ([]hostplugin.ViewOption, error) {
	var opts []hostplugin.ViewOption
	switch v.copy {
	case "":
	case "never":
		opts = append(opts, hostplugin.NoCopy())
	case "if-needed":
		opts = append(opts, hostplugin.AllowCopy())
	default:
		return nil, usagef("--copy %s: expected never or if-needed", v.copy)
	}
	if err := checkColour(v.colour); err != nil {
		return nil, err
	}
	if v.writable {
		opts = append(opts, hostplugin.Writable())
	}
	return opts, v.bounds.check()
}

func checkColour(when string) error {
	switch render.When(when) {
	case render.Auto, render.Always, render.Never:
		return nil
	}
	return usagef("--color %s: expected auto, always or never", when)
}

func (v *view) run(ctx context.Context, names, extra []string) error {
	opts, err := v.options()
	if err != nil {
		return err
	}
	level, err := v.target.level()
	if err != nil {
		return err
	}
	cfg, err := v.target.load(names, extra)
	if err != nil {
		return v.startFailed(err, names)
	}
	all, err := choose(cfg, v.target.program, names)
	if err != nil {
		return err
	}
	if err := v.files.check(all); err != nil {
		return err
	}
	l, err := newLooker(v.env, cfg, &v.target, v.bounds, level)
	if err != nil {
		return v.startFailed(err, names)
	}
	defer l.close()
	ctx, cancel := context.WithTimeout(ctx, v.bounds.timeout)
	defer cancel()
	var fatal, said error
	failed := false
	l.each(ctx, all, func(s session, w wanted, wait bool, err error) bool {
		whole := err // concerns the program as a whole: people need to read it only once
		if err == nil {
			err = v.show(ctx, l, s, w, wait, opts)
		}
		switch {
		case err == nil || fatal != nil:
			return true
		case whole == nil && !wait && errors.Is(err, core.ErrNotFound):
			return false
		case v.json:
			fatal = v.say(w.label, about(err, w))
		case whole == nil || whole != said: //nolint:errorlint // the very same error
			fatal = v.say(w.label, err)
		}
		failed, said = true, whole
		return true
	})
	v.env.stderr.Stop()
	switch {
	case fatal != nil:
		return fatal
	case ctx.Err() != nil && context.Cause(ctx) == context.Canceled: //nolint:errorlint // the cause itself
		return &statusError{statusInterrupted}
	case failed:
		return &statusError{statusFailed}
	}
	return nil
}

// startFailed says of every name why nothing could be started.
func (v *view) startFailed(err error, names []string) error {
	if _, usage := err.(*usageError); usage || !v.json { //nolint:errorlint // not one of ours that was wrapped
		return err
	}
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if err := v.say(name, err); err != nil {
			return err
		}
	}
	return &statusError{statusFailed}
}

// say tells why an array could not be had, where the reader of the results looks for it.
func (v *view) say(label string, err error) error {
	v.env.stderr.Stop()
	if v.json {
		return writeJSON(v.env.stdout, failure{label, explain(err)})
	}
	v.env.report(err)
	return nil
}

// show takes one array, which it may wait for, and shows it.
func (v *view) show(ctx context.Context, l *looker, s session, w wanted, wait bool, opts []hostplugin.ViewOption) (err error) {
	v.env.stderr.Progress("waiting for %s", w.name)
	if !wait {
		opts = append(slices.Clip(opts), hostplugin.NoWait())
	}
	array, err := l.view(ctx, s, w.name, opts)
	if err != nil {
		return l.deadline(below(ctx, s, w.name, err), w.program, w.name)
	}
	defer func() {
		if closed := array.Close(); err == nil {
			err = closed
		}
	}()
	if err := array.Wait(ctx); err != nil {
		return l.deadline(err, w.program, w.name)
	}
	v.env.stderr.Progress("reading %s", w.name)
	notes, failed := v.files.write(ctx, w.label, array)
	v.env.stderr.Stop()
	if err := v.tell(ctx, w.label, array, notes, failed == nil); failed == nil {
		return err
	}
	return failed
}

// tell says what an array is, and which files were written. Not whole is one of which another file could not be: then
// the error takes its place among the objects of --json.
func (v *view) tell(ctx context.Context, label string, array *core.View, notes []string, whole bool) error {
	if !v.json {
		return v.print(ctx, label, array, notes)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(v.env.stderr, "wrote %s\n", prose.Line(note)); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	return writeJSON(v.env.stdout, recordOf(label, array))
}

func (v *view) print(ctx context.Context, label string, array *core.View, notes []string) error {
	if v.shown++; v.shown > 1 {
		if _, err := fmt.Fprintln(v.env.stdout); err != nil {
			return err
		}
	}
	columns, _ := render.Columns(v.env.stdout)
	if err := writeSummary(ctx, v.env.stdout, label, array, render.TextOptions{
		Columns: min(max(columns-2, 0), 96), Depth: render.DepthOf(v.env.stdout, render.When(v.colour)),
	}); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(v.env.stdout, "  wrote %s\n", prose.Line(note)); err != nil {
			return err
		}
	}
	return nil
}
