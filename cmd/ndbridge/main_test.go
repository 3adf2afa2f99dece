package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// commandVariable makes the test binary the command line itself, for the tests that need a process.
const commandVariable = "NDBRIDGE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		os.Exit(carryOut(os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

func python(tb testing.TB) string {
	tb.Helper()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if python == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		tb.Fatal("NDBRIDGE_TEST_PYTHON and NDBRIDGE_LIB are not set; run make test")
	}
	return python
}

// result is what a command line came to.
type result struct {
	status         int
	stdout, stderr string
}

// command carries out one command line in this process.
func command(tb testing.TB, args ...string) result {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	status := run(tb.Context(), args, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// on is a command with a program of testdata: "view" or "ls" or "run", the program, then the rest. A
// program that ends is awaited, however busy the machine is.
func on(tb testing.TB, what, program string, args ...string) result {
	tb.Helper()
	begin := []string{what, "--script", "testdata/" + program, "--python", python(tb)}
	if what != "run" {
		begin = append(begin, "--patience", "1m")
	}
	return command(tb, append(begin, args...)...)
}

// want holds what a command came to; the texts must be part of what it wrote.
func (r result) want(tb testing.TB, status int, stdout, stderr string) {
	tb.Helper()
	if r.status != status || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		tb.Errorf("status %d, want %d, with %q on stdout and %q on stderr\nstdout:\n%s\nstderr:\n%s",
			r.status, status, stdout, stderr, r.stdout, r.stderr)
	}
}

// objects takes the lines of a command's standard output as JSON.
func (r result) objects(tb testing.TB) []map[string]any {
	tb.Helper()
	var all []map[string]any
	for line := range strings.Lines(r.stdout) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			tb.Fatalf("%v in line %q", err, line)
		}
		all = append(all, object)
	}
	return all
}

// process makes the command line a process of its own.
func process(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), commandVariable+"=1")
	return cmd
}

// file writes a file of a test.
func file(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}
