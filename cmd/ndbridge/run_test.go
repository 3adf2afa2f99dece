package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRun holds that a program runs as it would by itself: its output, arguments and status.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		script         string
		status         int
		stdout, stderr string
	}{
		"ends":        {"import sys; print(sys.argv[1:], __name__); print('to stderr', file=sys.stderr)", 0, "['a', '-b', '--', 'c d'] __main__\n", "to stderr\n"},
		"exits":       {"raise SystemExit(7)", 7, "", ""},
		"says why":    {"raise SystemExit('no more')", 1, "", "no more\n"},
		"raises":      {"1/0", 1, "", "ZeroDivisionError: division by zero\n"},
		"killed":      {"import os, signal; print('last', flush=True); os.kill(os.getpid(), signal.SIGTERM)", 143, "last\n", "ndbridge: run killed: the program was killed by signal 15 (SIGTERM)\n"},
		"crashed":     {"import os; os.abort()", 134, "", "ndbridge: run crashed: the program was killed by signal 6 (SIGABRT)\n"},
		"real-time":   {"import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 3)", 128 + 37, "", "killed by signal 37 (a real-time signal)\n"},
		"os._exit":    {"import os; os._exit(0)", 0, "", ""},
		"os._exit(9)": {"import os; os._exit(9)", 9, "", ""},
		"no newline":  {"print('no', end='')", 0, "no", ""},
		"no input":    {"import sys; print(repr(sys.stdin.read()))", 0, "''\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := file(t, dir, strings.ReplaceAll(name, " ", "_")+".py", c.script)
			r := command(t, "run", "--script", script, "--python", python(t), "--arg", "a", "--", "-b", "--", "c d")
			r.want(t, c.status, c.stdout, c.stderr)
			if r.stdout != c.stdout {
				t.Errorf("on stdout: %q, want %q", r.stdout, c.stdout)
			}
			if c.stderr == "" && r.stderr != "" {
				t.Errorf("on stderr: %s", r.stderr)
			}
		})
	}
}

// TestConfiguredPrograms holds how a program of a configuration is named.
func TestConfiguredPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "one.py", "import numpy as np\nframe = np.arange(3)\n")
	file(t, dir, "two.py", "import sys\nimport numpy as np\nframe = np.ones(2)\nprint(*sys.argv[1:])\n")
	config := file(t, dir, "ndbridge.hcl", `
		program "one" {
			python = "`+python(t)+`"
			script = "one.py"
		}
		program "two" {
			python = "`+python(t)+`"
			script = "two.py"
			args   = ["configured"]
		}`)
	for name, c := range map[string]struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		"both":          {[]string{"view", "one/frame", "two/frame", "--json"}, statusOK, `"name":"two/frame"`, "| configured"},
		"by flag":       {[]string{"view", "--program", "one", "frame"}, statusOK, "0  1  2", ""},
		"of which":      {[]string{"view", "frame"}, statusUsage, "", "frame: of which program? Say PROGRAM/frame or --program; the configuration has one, two"},
		"no such":       {[]string{"view", "--program", "tow", "frame"}, statusUsage, "", "--program tow: the configuration has one, two"},
		"no name":       {[]string{"view", "one/"}, statusUsage, "", `"one/": the array's name is missing`},
		"empty name":    {[]string{"view", "--program", "one", ""}, statusUsage, "", `"": the array's name is missing`},
		"ls":            {[]string{"ls", "--program", "two"}, statusOK, "frame  numpy  float64  2  16 bytes  copied: below-threshold\n", ""},
		"ls of which":   {[]string{"ls"}, statusUsage, "", "which program? Say --program; the configuration has one, two"},
		"run":           {[]string{"run", "two", "--", "more"}, statusOK, "configured more\n", ""},
		"run twice":     {[]string{"run", "one", "two"}, statusUsage, "", "run takes one program"},
		"run and which": {[]string{"run", "--program", "one", "two"}, statusUsage, "", "the program was given already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command(t, append([]string{c.args[0], "-c", config}, c.args[1:]...)...).want(t, c.status, c.stdout, c.stderr)
		})
	}
}

// TestModule runs a package as python -m does.
func TestModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "entry.py", "import numpy as np\nframe = np.arange(4)\n")
	config := file(t, dir, "ndbridge.hcl", `
		program "entry" {
			python = "`+python(t)+`"
			module = "entry"
			dir    = "`+filepath.ToSlash(dir)+`"
		}`)
	command(t, "view", "-c", config, "frame").want(t, statusOK, "0  1  2  3\n", "")
	command(t, "view", "--module", "no_such_module", "--python", python(t), "frame").
		want(t, statusFailed, "", "no_such_module")
}
