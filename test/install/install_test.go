// Package install tests what users install: the modules of a release, and what they embed.
package install

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	root   = "../.."
	module = "github.com/ndbridge/ndbridge"
)

// sandbox runs commands in a folder, with an environment of their own.
type sandbox struct {
	t   *testing.T
	dir string
	env []string
}

// run gives what a command prints. It must succeed.
func (s sandbox) run(name string, args ...string) string {
	s.t.Helper()
	out, _ := s.timed(name, args...)
	return out
}

func (s sandbox) timed(name string, args ...string) (string, time.Duration) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	took := time.Since(began)
	s.t.Logf("%5.1f s: %s %s", took.Seconds(), filepath.Base(name), strings.Join(args, " "))
	return string(out), took
}

// tree copies the repository's files, as they are in this working tree.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	treeInto(t, dir)
	return dir
}

func treeInto(t *testing.T, dir string) {
	t.Helper()
	sandbox{t: t, dir: root, env: append(os.Environ(), "OUT="+dir)}.run("bash", "-c",
		`mkdir "$OUT" && git ls-files -coz --exclude-standard | tar --create --null --ignore-failed-read --files-from - | tar --extract --directory "$OUT"`)
}

// goEnv is an environment for the go command that finds modules in a proxy, and what others made in this machine's module
// cache, but nothing that it has unpacked.
func goEnv(t *testing.T, proxy string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Fields(string(out))
	home := t.TempDir()
	if *report != "" {
		at[1] = filepath.Join(home, "build") // as a new user's
	}
	return []string{
		"HOME=" + home, "GOCACHE=" + at[1], "GOMODCACHE=" + filepath.Join(home, "mod"), "GOTOOLCHAIN=local",
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(at[0], "cache", "download"), "GOSUMDB=off",
		"GOFLAGS=-trimpath -modcacherw", // what others made is compiled once, wherever it lies
	}
}

// version is that of a release of the working tree.
const version = "v" + wire.Release

// released is a release of the working tree.
var released struct {
	sync.Once

	dir  string
	done bool
}

// release gives a proxy that has a release of the working tree, and the tree of its tag, which no test changes.
func release(t *testing.T) (proxy, tagged string) {
	t.Helper()
	released.Do(func() {
		dir, err := os.MkdirTemp("", "ndbridge-release-") //nolint:usetesting // several tests use it; TestMain removes it
		if err != nil {
			t.Fatal(err)
		}
		released.dir = dir
		makeRelease(t, filepath.Join(dir, "tree"), filepath.Join(dir, "proxy"))
		released.done = true
	})
	if !released.done {
		t.Fatal("no release could be made in another test")
	}
	return filepath.Join(released.dir, "proxy"), filepath.Join(released.dir, "tree")
}

func makeRelease(t *testing.T, dir, proxy string) {
	t.Helper()
	treeInto(t, dir)
	s := sandbox{t: t, dir: dir, env: append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t", "GOSUMDB=off")}
	s.run("bash", "-c", "git init -q && git add -A && git commit -qm all")
	for _, arch := range []string{"amd64", "arm64"} {
		// Those of arm64 need not be built, and are not run here.
		built, err := filepath.Abs(filepath.Join(root, "native/linux_amd64/files"))
		if err != nil {
			t.Fatal(err)
		}
		s.run("cp", "-r", built+"/.", "native/linux_"+arch+"/files")
	}
	tags := s.run("native/release.sh", version)
	want := "bridges/arrow/V\nbridges/gomlx/V\nbridges/gonum/V\nbridges/onnxruntime/V\nnative/linux_amd64/V\nnative/linux_arm64/V\nV\n"
	if want = strings.ReplaceAll(want, "V", version); !strings.HasSuffix(tags, want) {
		t.Errorf("the tags are %q", tags)
	}
	s.run("git", "checkout", "-q", "--force", version)
	s.run("go", "run", "./native/proxy", ".", version, proxy)
}

// TestGoGet does what a new user does, with Go and a Python with NumPy alone: no compiler, no make, no clone.
func TestGoGet(t *testing.T) {
	proxy, tagged := release(t)
	bin := t.TempDir()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", harness.Python(t))
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	s := sandbox{t: t, dir: t.TempDir(), env: append(goEnv(t, proxy), "PATH="+bin, "GOBIN="+bin)}
	if err := os.CopyFS(s.dir, os.DirFS("testdata/first")); err != nil {
		t.Fatal(err)
	}
	_, initTime := s.timed(goTool, "mod", "init", "example.com/first")
	_, getTime := s.timed(goTool, "get", module+"/hostplugin")
	_, buildTime := s.timed(goTool, "build", "-o", "first", ".")
	// What is named wins over what is embedded, even if it is no good.
	lib := t.TempDir()
	if err := os.WriteFile(filepath.Join(lib, "ndbridge-all.so"), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := exec.CommandContext(t.Context(), filepath.Join(s.dir, "first"))
	named.Dir, named.Env = s.dir, slices.Concat(s.env, []string{"NDBRIDGE_LIB=" + lib})
	if out, err := named.CombinedOutput(); err == nil || !strings.Contains(string(out), "the plugin does not load") || !strings.Contains(string(out), lib) {
		t.Errorf("with another plugin in NDBRIDGE_LIB: %v: %s", err, out)
	}
	first, firstTime := s.timed(s.dir + "/first")
	again, againTime := s.timed(s.dir + "/first")
	figure("from an empty folder to the first element: `go mod init`, `go get` from files, `go build`, first run",
		fmt.Sprintf("%.1f s", (initTime+getTime+buildTime+firstTime).Seconds()))
	figure("of this: the first run, which unpacks", fmt.Sprintf("%.2f s", firstTime.Seconds()))
	figure("a later run", fmt.Sprintf("%.2f s", againTime.Seconds()))
	s.run(goTool, "build", "-tags", "ndbridge_nonative", "-o", "without", ".")
	added := float64(size(t, s.dir+"/first")-size(t, s.dir+"/without")) / 1e6
	if added > 6 {
		t.Errorf("the native module adds %.1f MB to an executable", added)
	}
	figure("added to a host's executable", fmt.Sprintf("%.1f MB", added))
	// On a busy machine a host also logs that it waits.
	if want := "1 1002001 shared-heap\n"; !strings.HasSuffix(first, want) || !strings.HasSuffix(again, want) {
		t.Errorf("it prints %q, then %q", first, again)
	}
	// The command line works, too, and go.sum of the tag is complete.
	s.run(goTool, "install", module+"/cmd/ndbridge@"+version)
	if out := s.run(filepath.Join(bin, "ndbridge"), "version"); !strings.Contains(out, "ndbridge-all.so") {
		t.Error(out)
	}
	s.dir = tagged
	s.run(goTool, "build", "-mod=readonly", "-o", os.DevNull, "./cmd/ndbridge")
}

// TestNativeIsReproducible builds again, from a copy of the tree, and holds the checksums against those that are embedded.
func TestNativeIsReproducible(t *testing.T) {
	python, include := variable(t, "NDBRIDGE_TEST_PYTHON_NATIVE"), t.TempDir()
	if err := os.CopyFS(include, os.DirFS(variable(t, "NDBRIDGE_TEST_CUDA_INCLUDE"))); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	sandbox{t: t, dir: tree(t), env: os.Environ()}.run("native/build.sh", python, "go", "amd64", include, out)
	sums, err := os.ReadFile(filepath.Join(root, "native/linux_amd64/files/SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(out, name))
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || got != want {
			t.Errorf("%s is %s, then %s: %v", name, want, got, err)
		}
	}
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func variable(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; run make test", name)
	}
	return value
}
