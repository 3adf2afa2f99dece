// Package checks tests the simulated CUDA driver itself, with programs in C: plainly, and with the
// compiler's sanitizers.
package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// delay makes work so late that a test which does not wait for it cannot see it by chance.
const delay = "CUDASIM_DELAY_US=20000"

// program is the checks' executable, with the library that it was linked with.
type program struct {
	path, library string
	environment   []string
}

// build compiles the library and the checks with those flags.
func build(t *testing.T, flags ...string) program {
	t.Helper()
	include := includes(t)
	folder := t.TempDir()
	library := filepath.Join(folder, "libcuda.so.1")
	run(t, "../build.sh", append([]string{library, strings.TrimPrefix(include, "-I")}, flags...)...)
	sources, err := filepath.Glob("testdata/*.c")
	if err != nil {
		t.Fatal(err)
	}
	p := program{path: filepath.Join(folder, "checks"), library: folder}
	args := []string{
		"-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Wno-deprecated-declarations",
		"-isystem", strings.TrimPrefix(include, "-I"), "-pthread", "-o", p.path,
	}
	args = append(args, flags...)
	args = append(args, sources...)
	run(t, "cc", append(args, library)...)
	return p
}

// includes is the -I among the flags that building with cgo gets; cuda.h lies there.
func includes(t *testing.T) string {
	t.Helper()
	for flag := range strings.FieldsSeq(os.Getenv("CGO_CFLAGS")) {
		if strings.HasPrefix(flag, "-I") {
			return flag
		}
	}
	t.Fatal("CGO_CFLAGS names no folder with cuda.h; `make cuda` prints what to set")
	return ""
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// command runs the checks' executable.
func (p program) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+p.library, delay)
	cmd.Env = append(cmd.Env, p.environment...)
	return cmd
}

// check runs each check in a process of its own.
func (p program) check(t *testing.T) {
	t.Helper()
	list, err := p.command(t).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(list))
	if len(names) == 0 {
		t.Fatal("no checks")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := p.command(t, name).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestDriver(t *testing.T) {
	t.Parallel()
	build(t).check(t)
}

func TestDriverWithAddressSanitizer(t *testing.T) {
	t.Parallel()
	p := build(t, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
	p.environment = []string{"ASAN_OPTIONS=detect_leaks=0"} // programs end with what they hold
	p.check(t)
}

func TestDriverWithThreadSanitizer(t *testing.T) {
	t.Parallel()
	build(t, "-fsanitize=thread").check(t)
}
