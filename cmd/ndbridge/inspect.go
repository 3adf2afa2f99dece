package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/inspect"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// inspector carries out "ndbridge inspect".
type inspector struct {
	env    *environ
	target target

	listen       string
	certificate  string
	key          string
	passwordFile string
	budget       float64
	alarms       []string
	step         string
}

func newInspect(env *environ) *cobra.Command {
	i := &inspector{env: env, target: target{attaches: true}}
	cmd := &cobra.Command{
		Use:   "inspect [flags] [-- ARGUMENT...]",
		Short: "Look at the arrays of a running program in a browser",
		Long: `inspect runs a program, or attaches to one that runs already (--attach), serves a page about its arrays, and prints the address of the
page: a tree of the names, and of each array its figures, a histogram, a heat map or the image that it is, a line along an axis, its history, and
the difference to an earlier version. It raises alarms, and loads nothing from the network.

It listens on this machine only, and whoever has the address may look, since it holds a secret. With --listen it listens
elsewhere, too: then it speaks TLS, with the certificate that is given or one that it makes, and asks for the password
in --password-file.

An array is read once for all pages that show it, and reading takes no more than --budget percent of the time of one core. What the
program prints goes to standard error. The command ends with the program, or when it is interrupted; a script that has
ended well keeps its arrays until then.`,
		Example: `  ndbridge inspect --script train.py
  ndbridge inspect --attach trainer
  ndbridge inspect -c ndbridge.hcl --program camera
  ndbridge inspect --attach trainer --listen :8443 --password-file secret.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if names, _ := split(cmd, args); len(names) > 0 {
				return usagef("%s: inspect takes no names; arguments of the program stand behind --%s", names[0], scriptAmong(names))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              env.command(func(cmd *cobra.Command, args []string) error { return i.run(cmd.Context(), args) }),
	}
	i.target.define(cmd)
	f := cmd.Flags()
	f.StringVar(&i.listen, "listen", "127.0.0.1:0", "the `address` to listen at; port 0 is any that is free")
	f.StringVar(&i.certificate, "tls-cert", "", "a certificate, with those that vouch for it, in this PEM `file`")
	f.StringVar(&i.key, "tls-key", "", "its key, in this PEM `file`")
	f.StringVar(&i.passwordFile, "password-file", "", "the page's password is the first line of this `file`")
	f.Float64Var(&i.budget, "budget", 100*watch.DefaultBudget, "how many `percent` of the time of one core reading may take")
	f.StringArrayVar(&i.alarms, "alarm", nil, "raise an alarm on this `condition`, as 'ndbridge watch' does, of any array; may be given again. Without any, of NaN and infinities, in what the page shows")
	f.StringVar(&i.step, "step", "", "the `name` of the program's count of its steps: a number, or an array of one element. Alarms then say the step")
	for _, name := range []string{"tls-cert", "tls-key", "password-file"} {
		mustComplete(cmd.MarkFlagFilename(name))
	}
	return cmd
}

func (i *inspector) run(ctx context.Context, extra []string) (err error) {
	if i.budget <= 0 || i.budget > 100 {
		return usagef("--budget %v: expected more than 0 and at most 100", i.budget)
	}
	level, err := i.target.level()
	if err != nil {
		return err
	}
	options, err := i.options()
	if err != nil {
		return err
	}
	cfg, err := i.target.load(nil, extra)
	if err != nil {
		return err
	}
	all, err := choose(cfg, i.target.program, nil)
	if err != nil {
		return err
	}
	look, err := newLooker(i.env, cfg, &i.target, bounds{}, level)
	if err != nil {
		return err
	}
	defer look.close()
	options.Program, options.Logger = all[0].program, logger(i.env, level)
	i.env.stderr.Progress("starting %s", options.Program)
	s, err := i.target.open(ctx, look.host, options.Program)
	if err != nil {
		return err
	}
	return i.serve(ctx, s, options)
}

// serve prints the address, and serves until the end.
func (i *inspector) serve(ctx context.Context, s *hostplugin.Session, options inspect.Options) error {
	options.Session, options.Attached = s, i.target.attach != ""
	server, err := inspect.New(ctx, options)
	if err != nil {
		return err
	}
	i.env.stderr.Stop()
	if sum := server.Fingerprint(); sum != "" {
		if _, err := fmt.Fprintf(i.env.stderr, "the certificate is made for this run; its SHA-256 fingerprint is\n  %s\n", sum); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(i.env.stdout, server.Address()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	err = server.Run(ctx)
	if ctx.Err() != nil {
		return &statusError{statusInterrupted}
	}
	return err
}

// options are those of the server that flags say.
func (i *inspector) options() (inspect.Options, error) {
	o := inspect.Options{Listen: i.listen, Budget: i.budget / 100, Step: i.step}
	for _, text := range i.alarms {
		alarm, err := watch.ParseAlarm(text)
		if err != nil {
			return o, usagef("--alarm %s: %w", text, err)
		}
		o.Alarms = append(o.Alarms, alarm)
	}
	if err := checkStep(i.step); err != nil {
		return o, err
	}
	if (i.certificate == "") != (i.key == "") {
		return o, usagef("--tls-cert and --tls-key: one needs the other")
	}
	if i.certificate != "" {
		pair, err := tls.LoadX509KeyPair(i.certificate, i.key)
		if err != nil {
			return o, &core.Error{Op: "inspect", Object: i.certificate, Kind: core.ErrConfig, Err: err, Remedy: "give a certificate and its key as PEM files"}
		}
		o.Certificate = &pair
	}
	if i.passwordFile != "" {
		text, err := os.ReadFile(i.passwordFile)
		if err == nil {
			o.Password, _, _ = strings.Cut(string(text), "\n")
			if o.Password = strings.TrimRight(o.Password, "\r"); o.Password == "" {
				err = errors.New("its first line is empty")
			}
		}
		if err != nil {
			return o, &core.Error{Op: "inspect", Object: i.passwordFile, Kind: core.ErrConfig, Err: err, Remedy: "write a password into the file"}
		}
	}
	return o, nil
}
