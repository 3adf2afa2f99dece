package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/core"
)

// kernelName is what a kernel's folder may be called.
var kernelName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

// kernel carries out "ndbridge jupyter install".
type kernel struct {
	env                   *environ
	python, name, display string
}

func newJupyter(env *environ) *cobra.Command {
	k := &kernel{env: env}
	install := &cobra.Command{
		Use:   "install [flags]",
		Short: "Add a kernel to Jupyter to which hosts can come",
		Long: `install writes a kernel specification for this user, by which Jupyter starts the kernel of an interpreter
through ndbridge run --share: hosts attach to it while it runs, by the name that --name says. It
needs ipykernel in the interpreter's environment, and installs nothing there. "jupyter kernelspec remove" removes it.`,
		Example: `  ndbridge jupyter install --python .venv/bin/python
  ndbridge view --attach ndbridge frame`,
		Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(cmd *cobra.Command, _ []string) error { return k.install(cmd.Context()) }),
	}
	f := install.Flags()
	f.StringVar(&k.python, "python", "python3", "the `interpreter`, a path or a name on PATH")
	f.StringVar(&k.name, "name", "ndbridge", "what the kernel is called by Jupyter and by hosts")
	f.StringVar(&k.display, "display-name", "", "what Jupyter shows (default Python (NAME))")
	cmd := &cobra.Command{
		Use: "jupyter", Short: "Let hosts come to notebooks", Args: noArguments, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(*cobra.Command, []string) error { return usagef("jupyter: install is what it can do") }),
	}
	cmd.AddCommand(install)
	return cmd
}

// specification is a kernel.json: see Jupyter's documentation of kernel specifications.
type specification struct {
	Argv     []string       `json:"argv"`
	Display  string         `json:"display_name"`
	Language string         `json:"language"`
	Metadata map[string]any `json:"metadata"`
}

func (k *kernel) install(ctx context.Context) error {
	if !kernelName.MatchString(k.name) {
		return usagef("--name %s: expected letters, digits, '_', '-' and '.', up to 64", k.name)
	}
	python, err := k.interpreter(ctx)
	if err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := jupyterData()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(specification{
		Argv:     []string{own, "run", "--share", "--name", k.name, "--", python, "-m", "ipykernel_launcher", "-f", "{connection_file}"},
		Display:  cmp.Or(k.display, "Python ("+k.name+")"),
		Language: "python", Metadata: map[string]any{"debugger": true},
	}, "", " ")
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "kernels", strings.ToLower(k.name)) // Jupyter looks for names in lower case
	if err := os.MkdirAll(dir, 0o755); err != nil {              //nolint:gosec // as Jupyter makes it
		return err
	}
	file := filepath.Join(dir, "kernel.json")
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil { //nolint:gosec // as Jupyter writes it
		return err
	}
	_, err = fmt.Fprintln(k.env.stdout, file)
	return err
}

// interpreter finds the interpreter, which must have ipykernel. A link stays one: a virtual environment is found by it.
func (k *kernel) interpreter(ctx context.Context) (string, error) {
	path, err := exec.LookPath(k.python)
	if err == nil || errors.Is(err, exec.ErrDot) {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &core.Error{
			Op: "jupyter install", Object: k.python, Kind: core.ErrConfig, Err: errors.New("the interpreter does not exist"), Remedy: "name one by --python",
		}
	}
	out, err := exec.CommandContext(ctx, path, "-c", "import ipykernel").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", &core.Error{
			Op: "jupyter install", Object: k.python, Kind: core.ErrUnavailable,
			Err: fmt.Errorf("the interpreter cannot import ipykernel: %s", cmp.Or(lines[len(lines)-1], err.Error())), Remedy: path + " -m pip install ipykernel",
		}
	}
	return path, nil
}

// jupyterData is where Jupyter has the data of this user.
func jupyterData() (string, error) {
	if dir := os.Getenv("JUPYTER_DATA_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "jupyter"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "jupyter"), err
}
