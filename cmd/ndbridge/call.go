package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/bridges/npy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// caller carries out "ndbridge call".
type caller struct {
	env     *environ
	target  target
	in      []string
	args    []string
	out     string
	as      string
	timeout time.Duration
}

func newCall(env *environ) *cobra.Command {
	c := &caller{env: env, target: target{attaches: true, calls: true}}
	cmd := &cobra.Command{
		Use:   "call [flags] [PROGRAM/]FUNCTION [VALUE|NAME=VALUE...] [-- ARGUMENT...]",
		Short: "Call a function of a program with arrays from files, and print what it returns",
		Long: `call runs a program and calls one of its functions, as a host would. --in gives it arrays of .npy files
as arguments: over the host's memory, without a copy. The VALUEs follow them. Each is JSON (5, 0.5, true,
null, "text", [1, 2]), or else text as it stands; NAME=VALUE, --arg NAME=VALUE and --in NAME=FILE are keyword arguments.
Arguments of the program's own stand behind --.

What the function returns is printed as JSON; an array in it as its description. --out writes the arrays:
a single one as .npy, any number as .npz, under their keys if the result is a dict, else as arr_0, arr_1 ...
What the program prints goes to standard error, and so do an exception and its traceback. Ctrl-C and
--timeout cancel the call.

The exit status is 0, 1 if the call failed, 130 if it was interrupted, and 2 if the command line makes no sense.`,
		Example: `  ndbridge call --script model.py predict --in x.npy top=5 --out scores.npy
  ndbridge call --script model.py model.forward --in x=image.npy --as torch
  ndbridge call -c ndbridge.hcl model/describe`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(cmd *cobra.Command, args []string) error {
			words, extra := split(cmd, args)
			if len(words) == 0 {
				return usagef("which function? Name it behind the flags")
			}
			return c.run(cmd.Context(), words[0], words[1:], extra)
		}),
	}
	c.target.define(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.in, "in", nil, "an array of this .npy `file` as the next argument, or NAME=FILE as a keyword argument; may be given again")
	f.StringArrayVar(&c.args, "arg", nil, "a keyword argument of the function, as `NAME=VALUE`; may be given again")
	f.StringVar(&c.out, "out", "", "write the arrays of the result to this .npy or .npz `file`")
	f.StringVar(&c.as, "as", "", "the `framework` whose arrays the arguments become: numpy, torch, jax (default: as the function's annotations say)")
	f.DurationVar(&c.timeout, "timeout", time.Minute, "give up after this `time`")
	mustComplete(cmd.MarkFlagFilename("in", "npy"))
	mustComplete(cmd.MarkFlagFilename("out", "npy", "npz"))
	return cmd
}

func (c *caller) run(ctx context.Context, name string, words, extra []string) error {
	level, err := c.target.level()
	if err != nil {
		return err
	}
	for _, arg := range c.args {
		if name, _ := keyword(arg); name == "" {
			return usagef("--arg %s: expected NAME=VALUE; arguments of the program stand behind --", arg)
		}
	}
	switch {
	case c.timeout <= 0:
		return usagef("--timeout must be positive")
	case c.out != "" && !strings.HasSuffix(c.out, ".npy") && !strings.HasSuffix(c.out, ".npz"):
		return usagef("--out %s: expected the name of an .npy or .npz file", c.out)
	}
	cfg, err := c.target.load([]string{name}, extra)
	if err != nil {
		return err
	}
	all, err := choose(cfg, c.target.program, []string{name})
	if err != nil {
		return err
	}
	host, err := newHost(c.env, cfg, level, c.env.stderr, c.env.stderr)
	if err != nil {
		return err
	}
	defer host.Close()                    //nolint:errcheck // the log says if the program had to be killed
	args, err := c.arguments(host, words) // what is wrong with them starts no program
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, err := c.target.open(ctx, host, all[0].program)
	if err != nil {
		return err
	}
	err = c.call(ctx, s, all[0].name, args)
	if e, ok := errors.AsType[*core.PythonError](err); ok && e.Traceback != "" {
		_, _ = io.WriteString(c.env.stderr, prose.Text(e.Traceback)) // standard error has no better place to go
	}
	return err
}

func (c *caller) call(ctx context.Context, s *hostplugin.Session, name string, args []any) (err error) {
	var opts []hostplugin.FuncOption
	if c.as != "" {
		opts = append(opts, hostplugin.As(c.as))
	}
	f, err := s.Func(ctx, name, opts...)
	if err != nil {
		return err
	}
	r, err := f.Call(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	v, err := r.Value()
	if err != nil {
		return err
	}
	if c.out != "" {
		if err := c.write(ctx, name, v, r.Views()); err != nil {
			return err
		}
		if r.View() != nil {
			return nil
		}
	}
	return writeJSON(c.env.stdout, plain(v))
}

// arguments reads what the function is called with. The host closes the arrays.
func (c *caller) arguments(host *hostplugin.Host, words []string) (args []any, err error) {
	kw := hostplugin.Kw{}
	add := func(name string, v any) error {
		if name == "" {
			args = append(args, v)
			return nil
		}
		if _, twice := kw[name]; twice {
			return usagef("%s is given twice", name)
		}
		kw[name] = v
		return nil
	}
	for _, in := range c.in {
		name, file := keyword(in)
		v, err := readNPY(host, file)
		if err != nil {
			return nil, err
		}
		if err := add(name, v); err != nil {
			return nil, err
		}
	}
	for _, word := range slices.Concat(c.args, words) {
		name, text := keyword(word)
		if err := add(name, valueOf(text)); err != nil {
			return nil, err
		}
	}
	return append(args, kw), nil
}

// keyword takes NAME=VALUE apart. What has no Python name before the = is a value as a whole.
func keyword(word string) (name, value string) {
	name, value, ok := strings.Cut(word, "=")
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r < 0x80
	}) || name[0] >= '0' && name[0] <= '9' {
		return "", word
	}
	return name, value
}

// valueOf reads JSON. What is none is text.
func valueOf(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return text
	}
	return numbers(v)
}

func readNPY(host *hostplugin.Host, file string) (*core.View, error) {
	f, err := os.Open(file)
	if err == nil {
		defer f.Close() //nolint:errcheck // it was only read
		var v *core.View
		if v, err = npy.Read(bufio.NewReaderSize(f, 1<<16), host.New); err == nil {
			return v, nil
		}
	}
	if core.Category(err) != "" {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return nil, &core.Error{Op: "read " + file, Kind: core.ErrConfig, Err: err, Remedy: "name an .npy file"}
}
