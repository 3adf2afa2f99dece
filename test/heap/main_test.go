// Package heap tests the shared heap's library on the real thing: C programs that know each of its
// edges, Python with the frameworks, and numpy's own test suite.
package heap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	preloadDir = "../../internal/sharedheap/preload"
	stressDir  = "testdata/stress"
	insideDir  = "testdata/inside"
)

// every makes every caller's large blocks shared, not only the frameworks'.
const every = "NDBRIDGE_HEAP_LIBRARIES=*"

// promotes makes blocks that a fork has frozen shareable again, whatever the rights of the test.
const promotes = "NDBRIDGE_HEAP_PROMOTE=always"

// bound ends a program that hangs. numpy's suite takes minutes, and more on a busy machine.
const bound = 25 * time.Minute

// built is where TestMain lets tests put what they compile once.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ndheap")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// library is the path of the library under test.
func library(t *testing.T) string {
	t.Helper()
	return harness.Library(t, "libndbridge-heap.so")
}

// stress is the path of the stress program.
func stress(t *testing.T) string {
	t.Helper()
	file, err := buildStress()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

var buildStress = sync.OnceValues(func() (string, error) {
	sources, err := filepath.Glob(filepath.Join(stressDir, "*.c"))
	if err != nil {
		return "", err
	}
	// Its wrong frees are meant; and the compiler must not know what malloc does.
	flags := append([]string{"-Wno-use-after-free", "-fno-builtin", "-I" + preloadDir}, sources...)
	return compile("stress", flags...)
})

func compile(name string, args ...string) (string, error) {
	file := filepath.Join(built, name)
	flags := []string{"-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-pthread", "-o", file}
	out, err := exec.CommandContext(context.Background(), compiler(), append(append(flags, args...), "-ldl")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", name, err, out)
	}
	return file, nil
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// libraries are those that were built with flags of their own, by the flags.
var libraries sync.Map

// libraryWith gives the library with flags of its own, which is built once for all tests.
func libraryWith(t *testing.T, flags ...string) string {
	t.Helper()
	build, _ := libraries.LoadOrStore(strings.Join(flags, " "), sync.OnceValues(func() (string, error) { return buildLibrary(flags) }))
	file, err := build.(func() (string, error))() //nolint:errcheck,forcetypeassert // stored above
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func buildLibrary(flags []string) (string, error) {
	dir, err := os.MkdirTemp(built, "library")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "libndbridge-heap.so")
	build := exec.CommandContext(context.Background(), filepath.Join(preloadDir, "build.sh"), append([]string{file}, flags...)...)
	build.Env = append(os.Environ(), "CC="+compiler())
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build.sh: %w\n%s", err, out)
	}
	return file, nil
}

// command prepares a program that runs with the library preloaded and a clean environment, so that
// settings of the one who runs the tests do not reach it.
func command(t *testing.T, file, lib string, env, args []string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, file, args...)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "JAX_PLATFORMS=cpu"}, env...)
	if lib != "" {
		c.Env = append(c.Env, "LD_PRELOAD="+lib)
	}
	c.WaitDelay = 10 * time.Second
	return c
}

// run runs a command that must succeed and gives what it printed.
func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", c.Args, err, out.String(), errs.String())
	}
	return out.String()
}

// fail runs a command that must not succeed and gives its state and what it said.
func fail(t *testing.T, c *exec.Cmd) (*os.ProcessState, string) {
	t.Helper()
	out, err := c.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ProcessState, string(out)
	}
	t.Fatalf("%v: %v, want a failure\n%s", c.Args, err, out)
	return nil, ""
}
