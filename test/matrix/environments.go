package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A python is an interpreter of the version matrix, in an environment that has no framework but NumPy.
type python struct {
	minor   string // "3.11"
	version string // "3.11.7"
	path    string
}

// matrixEnvironments lists the interpreters that test/matrix.sh has made environments for.
func matrixEnvironments(venvs string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(venvs, "matrix", "pythons"))
	if err != nil {
		return nil, err
	}
	return filepath.SplitList(strings.TrimSpace(string(text))), nil
}

// findPythons gives the newest environment of each minor version, in ascending order.
func findPythons(ctx context.Context, venvs string) ([]python, error) {
	paths, err := matrixEnvironments(venvs)
	if err != nil {
		return nil, err
	}
	var pythons []python
	for _, path := range paths {
		minor, ok := strings.CutSuffix(environment(path), "-new")
		if !ok {
			continue
		}
		out, err := exec.CommandContext(ctx, path, "-c", "import platform; print(platform.python_version())").Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		pythons = append(pythons, python{minor, strings.TrimSpace(string(out)), path})
	}
	return pythons, nil
}

// environment names the virtual environment of an interpreter.
func environment(python string) string { return filepath.Base(filepath.Dir(filepath.Dir(python))) }

// environments gives the interpreters to test a framework under, beside the one with the newest version
// that its tests find by themselves. It makes those that are missing or older than their list.
func environments(
	ctx context.Context, opts options, f framework, lists []list, pythons []python, progress io.Writer,
) ([]string, error) {
	var paths []string
	if f.name == "numpy" {
		var err error
		if paths, err = matrixEnvironments(opts.venvs); err != nil {
			return nil, err
		}
	}
	for _, l := range lists {
		if !l.of(f) {
			continue
		}
		for _, minor := range l.pythons {
			i := slices.IndexFunc(pythons, func(p python) bool { return p.minor == minor })
			if i < 0 {
				fmt.Fprintf(progress, "no CPython %s is on PATH or under pyenv: without %s on it\n", minor, l.name)
				continue
			}
			dir := filepath.Join(opts.venvs, "matrix", minor+"-"+l.name)
			if err := makeEnvironment(ctx, opts, pythons[i], dir, l.name, progress); err != nil {
				return nil, err
			}
			paths = append(paths, filepath.Join(dir, "bin", "python"))
		}
	}
	return paths, nil
}

func makeEnvironment(ctx context.Context, opts options, p python, dir, name string, progress io.Writer) error {
	file := filepath.Join(opts.requirements, name+".txt")
	want, err := os.Stat(file)
	if err != nil {
		return err
	}
	if have, err := os.Stat(filepath.Join(dir, ".done")); err == nil && !have.ModTime().Before(want.ModTime()) {
		return nil
	}
	cmd := exec.CommandContext(ctx, opts.venvScript, p.path, dir, file)
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the environment %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// platform names the system that the tests run on: "Linux 6.18 x86_64".
func platform(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "uname", "-srm").Output()
	if err != nil {
		return "", err
	}
	return regexp.MustCompile(`(\d+\.\d+)\S*`).ReplaceAllString(strings.TrimSpace(string(out)), "$1"), nil
}
