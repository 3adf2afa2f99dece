package main

import (
	"strings"
	"testing"
)

// TestSummary holds what people read.
func TestSummary(t *testing.T) {
	t.Parallel()
	r := on(t, "view", "program.py", "small", `batch["it's"]`, "big")
	r.want(t, statusOK, `small
  framework  numpy
  dtype      int16
  shape      2 x 3
  strides    6, 2 bytes (row-major)
  device     cpu
  size       12 bytes
  route      staged: a copy, because it is too small for the shared heap (below-threshold)
  writable   yes, but not through this view
`, "| said on stdout\n")
	r.want(t, statusOK, `
  values     1 to 6, mean 3.5
  1  2  3
  4  5  6

batch["it's"]
`, "| said on stderr\n")
	r.want(t, statusOK, "  writable   no: the array is read-only\n", "")
	r.want(t, statusOK, "  size       512.0 KiB (524288 bytes)\n  route      shared-heap: the program's own pages, no copy\n", "")
	if strings.Contains(r.stdout, "said") || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("standard output has more than results:\n%s", r.stdout)
	}
}

// TestKinds holds what is said of arrays that are not plain.
func TestKinds(t *testing.T) {
	t.Parallel()
	r := on(t, "view", "kinds.py")
	for _, want := range []string{
		"big_endian\n  framework  numpy\n  dtype      >f8, as opaque[8]\n", "\n         0  0.333333  0.666667         1   1.33333\n",
		"dates\n  framework  numpy\n  dtype      datetime64[ns], as opaque[8]\n",
		"scalar\n  framework  numpy\n  dtype      float64\n  shape      one element, no axes\n  strides    none\n",
		"  shape      0 x 3\n", "  route      none: there are no elements\n",
		"  strides    48, -16, -8 bytes (backwards)\n",
		"  strides    0, 2 bytes (repeated)\n",
		"  strides    4, 8, 24 bytes (column-major)\n",
		"  strides    7 bytes (with gaps or permuted)\n",
		"; 1 NaN; 1 infinite\n",
		"(magnitudes)",
	} {
		r.want(t, statusOK, want, "")
	}
}

// TestViewOptions holds what a view is asked for.
func TestViewOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		"writable":       {[]string{"--writable", "big"}, statusOK, "yes, and this view may write", ""},
		"read-only":      {[]string{"--writable", "frozen"}, statusFailed, "", "ndbridge: view program/frozen: read-only: "},
		"small":          {[]string{"--writable", "small"}, statusFailed, "", "memory cannot be shared"},
		"never":          {[]string{"--copy", "never", "small", "big"}, statusFailed, "big\n", "ndbridge: view program/small: memory cannot be shared"},
		"if-needed":      {[]string{"--copy", "if-needed", "small"}, statusOK, "below-threshold", ""},
		"no shared heap": {[]string{"--no-shared-heap", "big"}, statusOK, "staged: a copy, because the program runs without the shared heap", ""},
		"plugin":         {[]string{"--plugin", "numpy", "small"}, statusOK, "1  2  3", ""},
		"no plugin":      {[]string{"--plugin", "nmupy", "small"}, statusFailed, "", "  remedy: did you mean \"numpy\"?"},
		"log":            {[]string{"--log-level", "debug", "small"}, statusOK, "1  2  3", "level=DEBUG"},
		"arguments":      {[]string{"--arg", "one", "arguments", "--", "--two"}, statusOK, "<U5, as opaque[20]", ""},
		"did you mean":   {[]string{"smalls"}, statusFailed, "", "  remedy: did you mean \"small\"?\n"},
		"no item":        {[]string{`batch["y"]`}, statusFailed, "", "ndbridge: view program/batch[\"y\"]: "},
		"a dict":         {[]string{"batch"}, statusFailed, "", "  remedy: name one of the arrays below it: batch[\"x\"], batch[\"it's\"], batch[\"a \\\"b\\\"\"][0] and 1 more; ndbridge ls --deep lists all\n"},
		"a pattern":      {[]string{"fro*"}, statusFailed, "", "  remedy: name one of the arrays that it means: frozen\n"},
		"no name":        {[]string{"1+1"}, statusFailed, "", "ndbridge: view program/1+1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, "view", "program.py", c.args...).want(t, c.status, c.stdout, c.stderr)
		})
	}
}

// TestUsage holds that a command line that makes no sense starts nothing, and says why.
func TestUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"view frame":                            "ndbridge view: which program? Give --script FILE, --module NAME or --config FILE (there is no ndbridge.hcl here)\nRun 'ndbridge view --help'",
		"view testdata/program.py frame":        "(there is no ndbridge.hcl here); did you mean --script testdata/program.py?\n",
		"run testdata/program.py":               "(there is no ndbridge.hcl here); did you mean --script testdata/program.py?\n",
		"ls testdata/program.py":                "arguments of the program stand behind --; did you mean --script testdata/program.py?\n",
		"view --script a.py --module b frame":   "--script and --module: only one of them can say which program is meant",
		"view --script a.py -c b.hcl frame":     "--script and --config: only one of them",
		"ls --module a --program b":             "--module and --program: --program names one of a configuration",
		"ls --script a.py frame":                "frame: ls takes no names; arguments of the program stand behind --",
		"run --script a.py frame":               "frame: the program was given already; its arguments stand behind --",
		"view --script a.py --copy sometimes x": "--copy sometimes: expected never or if-needed",
		"view --script a.py --color blue x":     "--color blue: expected auto, always or never",
		"view --script a.py --log-level loud x": "--log-level loud: expected debug, info, warn or error",
		"view --script a.py --timeout 0 x":      "--timeout and --patience must be positive",
		"ls --script a.py --patience -1s":       "--timeout and --patience must be positive",
		"view --script a.py --timeout soon x":   `invalid argument "soon" for "--timeout" flag`,
		"view --no-such-flag":                   "unknown flag: --no-such-flag",
		"veiw --script a.py x":                  `unknown command "veiw" for "ndbridge"`,
		"flight --script a.py":                  `unknown command "flight" for "ndbridge": Arrow Flight has a command of its own, ndbridge-flight; go install ` + "github.com/ndbridge/ndbridge/bridges/arrow/cmd/ndbridge-flight@latest installs it\n",
		"version now":                           "version takes no arguments",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := command(t, strings.Fields(line)...)
			r.want(t, statusUsage, "", want)
			if r.stdout != "" || strings.Count(r.stderr, "\n") > 6 {
				t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
			}
		})
	}
}

// TestHelpAndCompletion holds that the commands explain and complete themselves.
func TestHelpAndCompletion(t *testing.T) {
	t.Parallel()
	config := file(t, t.TempDir(), "ndbridge.hcl", "program \"camera\" {\n  script = \"a.py\"\n}\nprogram \"lidar\" {\n  script = \"b.py\"\n}\n")
	for line, want := range map[string]string{
		"":                                  "Available Commands:",
		"view --help":                       "The exit status is 0, 1 if an array could not be had",
		"ls --help":                         "ls runs a program, or looks at one that runs already",
		"run --help":                        "128 and the number of the signal",
		"version":                           "ndbridge-all.so",
		"--version":                         "ndbridge version ",
		"completion bash":                   "__start_ndbridge",
		"completion zsh":                    "#compdef ndbridge",
		"completion fish":                   "complete -c ndbridge",
		"__complete v":                      "version\t",
		"__complete view --copy ":           "if-needed\n",
		"__complete run -c " + config + " ": "camera\nlidar\n",
		"__complete ls -c " + config + " --program ": "camera\nlidar\n",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(line)
			if strings.HasSuffix(line, " ") {
				words = append(words, "")
			}
			command(t, words...).want(t, statusOK, want, "")
		})
	}
}
