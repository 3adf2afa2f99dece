package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/doctor"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
)

// examiner carries out "ndbridge doctor".
type examiner struct {
	env    *environ
	opts   doctor.Options
	json   bool
	colour string
}

func newDoctor(env *environ) *cobra.Command {
	e := &examiner{env: env}
	cmd := &cobra.Command{
		Use:   "doctor [flags] [FRAMEWORK]...",
		Short: "Find out whether an interpreter and its frameworks work with ndbridge",
		Long: `doctor examines the machine, a Python interpreter, and each array framework in it:
` + strings.Join(doctor.Frameworks(), ", ") + `. It runs programs that make arrays of many kinds, takes views of
them as a host would, and compares what came with what Python says is in them; into those that are
shared it writes, and asks Python what is in them now. It says by which routes arrays come, which
quirks are in force, what is wrong, and what to do about it. Nothing is installed or changed. A
framework that crashes is reported, and the next one examined.

With --json it prints one object a line for each part: part, state ("ok", "wrong", "absent"), version,
interpreter, plugin, shared_heap, tried (name, route, reason, milliseconds, written, ok), routes,
quirks (id, seen), problems and notes (message, remedy).

The exit status is 0 if all is well, 1 if something is wrong, and 2 if the command line makes no sense.`,
		Example: `  ndbridge doctor
  ndbridge doctor --python .venv/bin/python torch
  ndbridge doctor --json | jq 'select(.state == "wrong").problems'`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return doctor.Frameworks(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: env.command(func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args) }),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&e.opts.Python, "python", "", "the `interpreter`, a path or a name on PATH (default python3)")
	f.StringVar(&e.opts.Plugin, "plugin", "", "the plugin: a shipped one by name, or a `path` (default all)")
	f.BoolVar(&e.json, "json", false, "print one JSON object a line")
	f.DurationVar(&e.opts.Timeout, "timeout", 2*time.Minute, "give up on a framework after this `time`")
	f.StringVar(&e.colour, "color", string(render.Auto), "mark in colours: auto, always, never")
	mustComplete(cmd.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (e *examiner) check(frameworks []string) error {
	for _, name := range frameworks {
		if known := doctor.Frameworks(); !slices.Contains(known, name) {
			return usagef("%s: no framework of that name is examined; %s", name,
				prose.Remedy(name, slices.Values(known), "there are "+strings.Join(known, ", ")))
		}
	}
	if e.opts.Timeout <= 0 {
		return usagef("--timeout must be positive")
	}
	return checkColour(e.colour)
}

func (e *examiner) run(ctx context.Context, frameworks []string) (err error) {
	if err := e.check(frameworks); err != nil {
		return err
	}
	// A reader who has read enough ends this as it ends others, but not before the temporary directory is gone.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer func() {
		signal.Reset(syscall.SIGPIPE)
		if errors.Is(err, syscall.EPIPE) {
			_, _ = e.env.stdout.Write([]byte("\n"))
		}
	}()
	e.opts.Frameworks = frameworks
	e.opts.Progress = func(what string) { e.env.stderr.Progress("%s", what) }
	colour := render.DepthOf(e.env.stdout, render.When(e.colour)) > render.Mono
	var wrong []string
	frameworksSeen := 0
	err = doctor.Examine(ctx, e.opts, func(p *doctor.Part) error {
		e.env.stderr.Stop()
		if p.State == doctor.Wrong {
			wrong = append(wrong, p.Name)
		}
		if len(p.Tried) > 0 && slices.Contains(doctor.Frameworks(), p.Name) {
			frameworksSeen++
		}
		if e.json {
			return writeJSON(e.env.stdout, p)
		}
		return p.Print(e.env.stdout, colour)
	})
	e.env.stderr.Stop()
	switch {
	case ctx.Err() != nil:
		return &statusError{statusInterrupted}
	case err != nil:
		return err
	case !e.json:
		if err := e.conclude(wrong, frameworksSeen); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return &statusError{statusFailed}
	}
	return nil
}

// conclude says in a line what it all comes to.
func (e *examiner) conclude(wrong []string, frameworks int) error {
	text := "all is well"
	switch {
	case len(wrong) > 0:
		text = "something is wrong: " + strings.Join(wrong, ", ")
	case frameworks == 0:
		text = "all is well, but no array framework is installed"
	}
	if _, err := fmt.Fprintf(e.env.stdout, "\n%s\n", text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
