// Command run runs the GPU tests of a bundle, section by section, and writes what they say: gpu.md, to
// be read, and gpu.json, with every row and every test. It is part of the bundle that make test-gpu
// makes, and needs neither Go nor a network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

type options struct {
	bundle     string // the unpacked bundle
	out        string // folder for the results
	python     string // interpreter with the frameworks
	frameworks string // those that are there, with commas
	command    string // by which the run was started, for the report
	packages   bool   // only list the packages
	sections   []section
}

// errFailed says that all went well but tests.
var errFailed = errors.New("some tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	if opts.packages {
		for _, p := range packages() {
			fmt.Fprintln(out, p)
		}
		return nil
	}
	if err := os.MkdirAll(opts.out, 0o755); err != nil {
		return err
	}
	r := newResults(ctx, opts)
	failed := false
	for _, s := range opts.sections {
		fmt.Fprintf(out, "== %s\n", s.name)
		result := s.run(ctx, opts, out)
		failed = failed || !result.passed()
		r.Sections = append(r.Sections, result)
		if err := r.write(opts); err != nil { // each time: a machine may be taken away
			return err
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&opts.bundle, "bundle", ".", "folder of the bundle")
	flags.StringVar(&opts.out, "out", "out", "folder for the results")
	flags.StringVar(&opts.python, "python", "python3", "interpreter with the frameworks")
	flags.StringVar(&opts.frameworks, "frameworks", "driver,pycuda", "the frameworks that are there")
	flags.StringVar(&opts.command, "command", "", "what to call this run in the report")
	flags.BoolVar(&opts.packages, "packages", false, "only list the packages whose tests are run")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "run [flags] [section...]\nThe sections are %s.\n", strings.Join(sectionNames(), ", "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	var err error
	if opts.bundle, err = filepath.Abs(opts.bundle); err != nil {
		return opts, err
	}
	if opts.out, err = filepath.Abs(opts.out); err != nil {
		return opts, err
	}
	opts.sections = allSections
	if flags.NArg() > 0 {
		opts.sections = nil
		for _, name := range flags.Args() {
			i := slices.Index(sectionNames(), name)
			if i < 0 {
				return opts, fmt.Errorf("no section %q; there are %s", name, strings.Join(sectionNames(), ", "))
			}
			opts.sections = append(opts.sections, allSections[i])
		}
	}
	return opts, nil
}
