package bootstrap_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// standin is a library with a plugin's C half and a stand-in for its Go half.
var standin string

// heap is the shared heap's library. Only tests that say so preload it.
var heap string

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait for other processes most of the time.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "bootstrap")
	if err == nil {
		standin, heap = filepath.Join(dir, "standin.so"), filepath.Join(dir, "heap.so")
		err = errors.Join(build(standin), run("../../internal/sharedheap/preload/build.sh", heap))
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(to string) error {
	const entry = "../../adapters/kit/entry"
	return run(cmp.Or(os.Getenv("CC"), "gcc"), "-shared", "-fPIC", "-O1",
		"-I"+entry, "-o", to, entry+"/lifecycle.c", entry+"/guard.c", entry+"/hosts.c", entry+"/threads.c", entry+"/pages.c", entry+"/signals.c", entry+"/heap.c", "testdata/standin.c", "-ldl", "-pthread")
}

func run(name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// each runs a test with every interpreter.
func each(t *testing.T, f func(t *testing.T, python string)) {
	t.Helper()
	for version, python := range bootstraptest.Interpreters(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f(t, python)
		})
	}
}

// start starts a program with the stand-in and sees it through its start.
func start(t *testing.T, p bootstraptest.Program) *bootstraptest.Process {
	t.Helper()
	p.Plugin = cmp.Or(p.Plugin, standin)
	proc := bootstraptest.Start(t, p)
	proc.Next(t, "python")
	proc.Next(t, "loaded")
	proc.Next(t, "start")
	return proc
}

// script writes a script and gives its path.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type result struct {
	status         int
	stdout, stderr string
}

// plain runs the interpreter alone.
func plain(t *testing.T, python, dir string, args ...string) result {
	t.Helper()
	return plainIn(t, python, dir, nil, args...)
}

// plainIn runs the interpreter alone, with some variables in its environment.
func plainIn(t *testing.T, python, dir string, env []string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NDBRIDGE_") })
	cmd.Env = append(cmd.Env, env...)
	_ = cmd.Run() // the state says it
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// hosted runs a program until it has ended, and ends the session then.
func hosted(t *testing.T, p bootstraptest.Program) (r result, ending bootstraptest.Message) {
	t.Helper()
	proc := start(t, p)
	for ending = range proc.Messages {
		if s := ending.Text("stage"); s == "finished" || s == "failed" {
			break
		}
	}
	proc.End(t)
	state := proc.Wait(t)
	return result{state.ExitCode(), proc.Stdout(), proc.Stderr()}, ending
}

var address = regexp.MustCompile(`\b0x[0-9a-f]+\b`)

// diff compares line by line, but for the addresses of objects.
func diff(t *testing.T, what, got, want string) {
	t.Helper()
	got, want = address.ReplaceAllString(got, "0x"), address.ReplaceAllString(want, "0x")
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("%s, line %d:\n got %q\nwant %q", what, i+1, a, b)
		}
	}
}
