package install

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/internal/native"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// built is what make dist makes for this processor.
var built struct {
	sync.Once

	dir string
}

// dist gives the folder of the archive, the wheel and the packages.
func dist(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		dir, err := os.MkdirTemp("", "ndbridge-dist-") //nolint:usetesting // several tests use it; TestMain removes it
		if err != nil {
			t.Fatal(err)
		}
		makeDist(t, dir)
		built.dir = dir
	})
	if built.dir == "" {
		t.Fatal("native/dist.sh has failed in another test")
	}
	return built.dir
}

func makeDist(t *testing.T, dir string) {
	t.Helper()
	env := os.Environ() // with the cache of builds
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib, err := native.Dir()
	if err != nil {
		t.Fatal(err)
	}
	sandbox{t: t, dir: root, env: env}.run("native/dist.sh", variable(t, "NDBRIDGE_TEST_PYTHON_NATIVE"), "go", variable(t, "NDBRIDGE_TEST_NFPM"), "amd64", lib, dir)
}

const (
	debName = "ndbridge_" + wire.Release + "_amd64.deb"
	rpmName = "ndbridge-" + wire.Release + "-1.x86_64.rpm"
)

// works checks that the installed command does what it is for, and finds the libraries of its package.
func works(t *testing.T, r clean) {
	t.Helper()
	if got := r.must(r.in("ndbridge", "version")); !strings.Contains(got, "/usr/lib/ndbridge: libndbridge-heap.so, ndbridge-all.so") ||
		!strings.Contains(got, "the executable embeds no plugin") {
		t.Errorf("ndbridge version: %s", got)
	}
	python := r.python()
	if got := r.must(r.in("ndbridge", "doctor", "--python", python)); !strings.Contains(got, "numpy") {
		t.Errorf("ndbridge doctor: %s", got)
	}
	r.put("../../examples/container/camera.py", "/tmp/ndbridge.py3")
	var view struct {
		Route string
		Shape []int
	}
	out, err := r.in("ndbridge", "view", "--python", python, "--script", "/tmp/ndbridge.py3", "--json", "frame").Output()
	if err != nil || json.Unmarshal(out, &view) != nil || view.Route != "shared-heap" || !slices.Equal(view.Shape, []int{480, 640}) {
		t.Errorf("ndbridge view: %v: %s", err, out)
	}
	// What is named wins over what is installed.
	r.put("../../examples/container/camera.py", "/tmp/ndbridge.lib/ndbridge-all.so")
	other, err := r.in("env", "NDBRIDGE_LIB=/tmp/ndbridge.lib", "ndbridge", "run", "--python", python, "--script", "/tmp/ndbridge.py3").CombinedOutput()
	if err == nil || !strings.Contains(string(other), "the plugin does not load") || !strings.Contains(string(other), "/tmp/ndbridge.lib") {
		t.Errorf("with another plugin in NDBRIDGE_LIB: %v: %s", err, other)
	}
	if got := r.must(r.in("bash", "-c", ". /usr/share/bash-completion/completions/ndbridge && complete -p ndbridge")); !strings.Contains(got, "-F __start_ndbridge ndbridge") {
		t.Errorf("the completion of bash: %s", got)
	}
	if got := r.must(r.in("ndbridge", "__complete", "do")); !strings.HasPrefix(got, "doctor\t") {
		t.Errorf("the command completes %q", got)
	}
	if got := r.must(r.in("zcat", "/usr/share/man/man1/ndbridge.1.gz", "/usr/share/man/man1/ndbridge-view.1.gz")); strings.Count(got, ".TH ") != 2 {
		t.Errorf("the manual pages: %s", got)
	}
}

// python gives the name of the system's newest Python. Where that is not python3, the host says that python3 is too old.
func (r clean) python() string {
	r.t.Helper()
	if r.suite != "bionic" {
		return "python3"
	}
	if out, err := r.in("ndbridge", "doctor", "--python", "python3").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "the interpreter is Python 3.6.9") || !strings.Contains(string(out), "use CPython 3.8 or newer") {
		r.t.Errorf("ndbridge doctor with an old Python: %v: %s", err, out)
	}
	return "python3.8"
}

// TestDeb installs the package in clean systems, uses it and removes it.
func TestDeb(t *testing.T) {
	deb := filepath.Join(dist(t), debName)
	eachRoot(t, func(t *testing.T, r clean) {
		t.Helper()
		before := r.files()
		r.put(deb, "/tmp/ndbridge.deb")
		r.must(r.in("dpkg", "--install", "/tmp/ndbridge.deb"))
		r.must(r.in("dpkg", "--verify", "ndbridge"))
		installed := difference(r.files(), before)
		for _, name := range []string{
			"/usr/bin/ndbridge", "/usr/share/doc/ndbridge/copyright", "/usr/share/doc/ndbridge/THIRD-PARTY-LICENSES",
			"/usr/share/zsh/vendor-completions/_ndbridge", "/usr/share/fish/vendor_completions.d/ndbridge.fish", "/usr/share/man/man1/ndbridge-doctor.1.gz",
		} {
			if installed[name] == "" {
				t.Errorf("%s is not there", name)
			}
		}
		works(t, r)
		r.must(r.in("rmdir", "/tmp/ndbridge-0")) // where children of programs would listen, without XDG_RUNTIME_DIR
		r.must(r.in("dpkg", "--purge", "ndbridge"))
		if after := r.files(); !maps.Equal(after, before) {
			t.Errorf("left behind: %v; missing: %v", difference(after, before), difference(before, after))
		}
	})
}

// TestRPM installs the package by rpm in clean systems, which for want of packages of its kind lack what rpm knows as glibc. It has
// the files of the .deb, and works as that does.
func TestRPM(t *testing.T) {
	out := dist(t)
	eachRoot(t, func(t *testing.T, r clean) {
		t.Helper()
		before := r.files()
		r.put(filepath.Join(out, debName), "/tmp/ndbridge.deb")
		r.put(filepath.Join(out, rpmName), "/tmp/ndbridge.rpm")
		r.must(r.in("dpkg", "--install", "/tmp/ndbridge.deb"))
		deb := difference(r.files(), before)
		sums := r.sums(deb)
		r.must(r.in("dpkg", "--purge", "ndbridge"))

		if got := r.must(r.rpm("--query", "--requires", "--package", "/tmp/ndbridge.rpm")); !strings.Contains(got, "libc.so.6(GLIBC_2.17)(64bit)") {
			t.Errorf("it requires %s", got)
		}
		r.must(r.rpm("--install", "--nodeps", "/tmp/ndbridge.rpm"))
		r.must(r.rpm("--verify", "--nodeps", "ndbridge"))
		rpm := difference(r.files(), before)
		// Where the two families have the same files at different places.
		moved := strings.NewReplacer("/usr/share/licenses/ndbridge/LICENSE", "/usr/share/doc/ndbridge/copyright", "/usr/share/licenses/", "/usr/share/doc/",
			"site-functions", "vendor-completions")
		got := map[string]string{}
		for name, sum := range r.sums(rpm) {
			got[moved.Replace(name)] = sum
		}
		if !maps.Equal(got, sums) {
			t.Errorf("the .rpm has %v\nthe .deb %v", got, sums)
		}
		works(t, r)
		r.must(r.in("rmdir", "/tmp/ndbridge-0")) // as above
		r.must(r.rpm("--erase", "ndbridge"))
		if after := r.files(); !maps.Equal(after, before) {
			t.Errorf("left behind: %v; missing: %v", difference(after, before), difference(before, after))
		}
	})
}

// rpm is a command of rpm, with its database where most systems have it, on a system of Debian's family, where rpm wants to be forced to
// install anything, but for the latest.
func (r clean) rpm(args ...string) *exec.Cmd {
	command := []string{"rpm", "--define", "_dbpath /var/lib/rpm"}
	if r.suite != "trixie" {
		command = append(command, "--force-debian")
	}
	return r.in(append(command, args...)...)
}

// sums gives the checksums of the regular files among some, with their modes.
func (r clean) sums(files map[string]string) map[string]string {
	r.t.Helper()
	sums := map[string]string{}
	for name, what := range files {
		if strings.HasPrefix(what, "f ") {
			sums[name] = what
		}
	}
	args := append([]string{"sha256sum"}, slices.Sorted(maps.Keys(sums))...)
	for line := range strings.Lines(r.must(r.in(args...))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] += " " + sum
	}
	return sums
}
