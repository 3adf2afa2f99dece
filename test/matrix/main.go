// Command matrix tests the adapters on many versions of their frameworks under many Pythons, and makes
// the table of what has passed where. `make matrix` runs it.
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
	"strings"
)

type options struct {
	venvs        string // folder of the environments
	requirements string // folder of the lists of packages
	venvScript   string // makes an environment
	out          string // file for the table
	frameworks   []framework
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	opts := options{}
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	flags.StringVar(&opts.venvs, "venvs", "build/venv", "folder of the Python environments")
	flags.StringVar(&opts.requirements, "requirements", "test/requirements", "folder of the lists of packages")
	flags.StringVar(&opts.venvScript, "venv", "test/venv.sh", "script that makes an environment")
	flags.StringVar(&opts.out, "out", "", "file for the table, which is written if all tests pass")
	only := flags.String("only", "", "frameworks, separated by commas, if not all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if opts.frameworks, err = choose(*only); err != nil {
		return err
	}
	if opts.venvs, err = filepath.Abs(opts.venvs); err != nil { // tests run in folders of their own
		return err
	}
	m, err := measure(ctx, opts, progress)
	if err != nil {
		return err
	}
	table := m.markdown()
	if _, err := io.WriteString(out, table); err != nil {
		return err
	}
	if err := m.failure(); err != nil {
		return err
	}
	if opts.out == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(opts.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(opts.out, []byte(table), 0o644)
}

// matrix is what has been measured.
type matrix struct {
	platform string
	pythons  []string // full versions, ascending
	results  []result // in the order of the frameworks
}

// result is that of one framework.
type result struct {
	framework framework
	cells     []cell
	failed    []string // tests
	gaps      []gap
}

// measure makes the environments, tests the adapters in them, and asks pip about what is left out.
func measure(ctx context.Context, opts options, progress io.Writer) (*matrix, error) {
	lists, err := readLists(opts.requirements)
	if err != nil {
		return nil, err
	}
	pythons, err := findPythons(ctx, opts.venvs)
	if err != nil {
		return nil, err
	}
	m := &matrix{}
	if m.platform, err = platform(ctx); err != nil {
		return nil, err
	}
	for _, p := range pythons {
		m.pythons = append(m.pythons, p.version)
	}
	for _, f := range opts.frameworks {
		envs, err := environments(ctx, opts, f, lists, pythons, progress)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "testing %s in %d environments beside the usual one\n", f.name, len(envs))
		events, err := test(ctx, f, envs)
		if err != nil {
			return nil, err
		}
		r := result{framework: f, cells: cells(events), failed: failed(events)}
		if len(r.failed) > 0 {
			fmt.Fprint(progress, outputs(events, r.failed))
		}
		if len(r.cells) == 0 {
			return nil, fmt.Errorf("the tests of %s tell of no version:\n%s", f.name, outputs(events, nil))
		}
		if r.gaps, err = gaps(ctx, f, r.cells, lists, pythons); err != nil {
			return nil, err
		}
		m.results = append(m.results, r)
	}
	return m, nil
}

// failure is not nil if any test has failed.
func (m *matrix) failure() error {
	var errs []error
	for _, r := range m.results {
		if len(r.failed) > 0 {
			errs = append(errs, fmt.Errorf("%s: failed: %s", r.framework.name, strings.Join(r.failed, ", ")))
		}
	}
	return errors.Join(errs...)
}
