package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// build is a command line and the files that its hosts load into programs, of one release.
type build struct{ command, lib string }

// this is the build of the working tree.
func this(t *testing.T) build {
	t.Helper()
	command := filepath.Join(t.TempDir(), "ndbridge")
	sandbox{t: t, dir: root, env: append(os.Environ(), "CGO_ENABLED=0")}.run("go", "build", "-trimpath", "-o", command, "./cmd/ndbridge")
	return build{command, variable(t, "NDBRIDGE_LIB")}
}

// other builds another release: the working tree, with a text replaced in some files. The libraries are built as users build theirs.
func other(t *testing.T, changes map[string][2]string) build {
	t.Helper()
	dir, out := tree(t), t.TempDir()
	for file, change := range changes {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), change[0]) != 1 {
			t.Fatalf("%s has not one %q: %v", file, change[0], err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := build{filepath.Join(out, "ndbridge"), filepath.Join(out, "lib")}
	if err := os.Mkdir(b.lib, 0o700); err != nil {
		t.Fatal(err)
	}
	s := sandbox{t: t, dir: dir, env: os.Environ()}
	s.run("internal/sharedheap/preload/build.sh", filepath.Join(b.lib, "libndbridge-heap.so"))
	s.run("go", "build", "-trimpath", "-tags", "grpcnotrace", "-buildmode=c-shared", "-o", filepath.Join(b.lib, "ndbridge-all.so"), "./adapters/numpy/plugin")
	s.env = append(s.env, "CGO_ENABLED=0")
	s.run("go", "build", "-trimpath", "-o", b.command, "./cmd/ndbridge")
	return b
}

// look has a host of one build look at a program with the files in lib, and gives what it says.
func look(t *testing.T, host build, lib string) (string, error) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "ramp.py")
	if err := os.WriteFile(script, []byte("import numpy\nramp = numpy.arange(100_000.0)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), host.command, "view", "--python", harness.Python(t), "--script", script, "ramp")
	cmd.Env = append(os.Environ(), "NDBRIDGE_LIB="+lib)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestReleases: hosts and plugins of different releases work together if they speak the same versions. Otherwise the error names both.
func TestReleases(t *testing.T) {
	ours := this(t)
	later := other(t, map[string][2]string{"internal/wire/release.go": {`"` + wire.Release + `"`, `"0.99.0"`}})
	for name, pair := range map[string][2]build{"a later plugin": {ours, later}, "a later host": {later, ours}} {
		if got, err := look(t, pair[0], pair[1].lib); err != nil || !strings.Contains(got, "shared-heap") || !strings.Contains(got, "0 to 99999") {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
	if got, err := exec.CommandContext(t.Context(), later.command, "version").Output(); err != nil || !strings.Contains(string(got), "0.99.0") {
		t.Errorf("the other release is %s, %v", got, err)
	}

	next := other(t, map[string][2]string{
		"internal/wire/wire.go":                {"ProtocolVersion = 1", "ProtocolVersion = 2"},
		"internal/sharedheap/preload/ndheap.h": {"#define NDHEAP_ABI ", "#define NDHEAP_ABI 1"}, // one of two digits
	})
	const remedy = "use host and plugin of the same release"
	mixed := t.TempDir() // a plugin of the next release, beside the heap of this one
	for name, from := range map[string]build{"libndbridge-heap.so": ours, "ndbridge-all.so": next} {
		data, err := os.ReadFile(filepath.Join(from.lib, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mixed, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		host build
		lib  string
		want []string
	}{
		"the next plugin":      {ours, next.lib, []string{"speaks version 1.2 of the protocol, this host version 1.1", next.lib, remedy}},
		"the next host":        {next, ours.lib, []string{"speaks version 1.1 of the protocol, this host version 1.2", ours.lib, remedy}},
		"the heap of this one": {next, mixed, []string{"the shared heap speaks version ", "of the plugin's own release"}},
	} {
		got, err := look(t, c.host, c.lib)
		if err == nil {
			t.Errorf("%s works: %s", name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: it lacks %q: %s", name, want, got)
			}
		}
	}
	if got, err := look(t, next, next.lib); err != nil || !strings.Contains(got, "shared-heap") {
		t.Errorf("the next release alone: %v: %s", err, got)
	}
}
