package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// chroot runs a command in a root, with a process namespace and mounts of its own, and the environment of a container: no HOME. The
// root is writable, "rw", or read-only but for a /tmp with the options of tmpfs that are given instead.
const chroot = `set -eu
root=$1 tmp=$2 && shift 2
mount --bind "$root" "$root"
[ $tmp = rw ] || { mount -o remount,bind,ro "$root" && mount -t tmpfs -o $tmp tmpfs "$root/tmp"; }
mount -t proc proc "$root/proc"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"`

// clean is a small installation of a distribution that a test may change: it has Python and NumPy, and neither Go nor a compiler.
type clean struct {
	sandbox

	dir, suite string
}

// eachRoot runs a test in a copy of each root.
func eachRoot(t *testing.T, test func(t *testing.T, root clean)) {
	t.Helper()
	for _, dir := range filepath.SplitList(variable(t, "NDBRIDGE_TEST_ROOTS")) {
		suite := filepath.Base(filepath.Dir(dir))
		t.Run(suite, func(t *testing.T) { test(t, newRoot(t, dir)) })
	}
}

// aRoot makes a copy of the root of a suite, or of the first one.
func aRoot(t *testing.T, suite string) clean {
	t.Helper()
	for _, dir := range filepath.SplitList(variable(t, "NDBRIDGE_TEST_ROOTS")) {
		if suite == "" || filepath.Base(filepath.Dir(dir)) == suite {
			return newRoot(t, dir)
		}
	}
	t.Fatalf("no root of %s in NDBRIDGE_TEST_ROOTS", suite)
	return clean{}
}

func newRoot(t *testing.T, dir string) clean {
	t.Helper()
	r := clean{sandbox: sandbox{t: t, dir: root, env: os.Environ()}, dir: filepath.Join(t.TempDir(), "root"), suite: filepath.Base(filepath.Dir(dir))}
	if os.Geteuid() != 0 && exec.CommandContext(t.Context(), "sudo", "-n", "true").Run() != nil {
		if harness.CI() {
			t.Fatal("packages are installed by root, or by sudo that asks for no password")
		}
		t.Skip("packages are installed by root, or by sudo that asks for no password")
	}
	t.Cleanup(func() {
		if out, err := r.command("rm", "-rf", r.dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	r.must(r.command("cp", "-a", "--reflink=auto", dir, r.dir))
	if out, err := r.in("sh", "-c", "command -v go || command -v cc || command -v gcc || command -v make").CombinedOutput(); err == nil {
		t.Fatalf("the root has %s", out)
	}
	return r
}

// command is a command of this machine, carried out as root.
func (r clean) command(name string, args ...string) *exec.Cmd {
	argv := append([]string{name}, args...)
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	return exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is used in cleanups, too, and ends by itself
}

// in is a command inside the root.
func (r clean) in(args ...string) *exec.Cmd { return r.inside("rw", args) }

// readOnly is a command inside the root, which it cannot change.
func (r clean) readOnly(args ...string) *exec.Cmd { return r.inside("mode=1777", args) }

// inside is a command inside the root, with what chroot takes for its /tmp.
func (r clean) inside(tmp string, args []string) *exec.Cmd {
	return r.command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", chroot, "sh", r.dir, tmp}, args...)...)
}

// put copies a file of this machine into the root.
func (r clean) put(file, to string) {
	r.t.Helper()
	r.must(r.command("install", "-D", "--mode=644", "--no-target-directory", file, filepath.Join(r.dir, to)))
}

// must gives what a command prints. It must succeed.
func (r clean) must(cmd *exec.Cmd) string {
	r.t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// files lists what is in the root besides what package managers remember: each file with its type, mode, owner and size.
func (r clean) files() map[string]string {
	r.t.Helper()
	list := r.must(r.in("sh", "-c", `find / -xdev \( -path /proc -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /var/lib/apt `+
		`-o -path /var/cache -o -path /var/log -o -path /tmp/ndbridge.\* \) -prune -o \( -type d -printf '%p\td %m %u\n' \) -o -printf '%p\t%y %m %u %s\n'`))
	files := map[string]string{}
	for line := range strings.Lines(list) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = what
	}
	return files
}

// difference gives what one list of files has and another has not, or has otherwise.
func difference(files, without map[string]string) map[string]string {
	added := map[string]string{}
	for name, what := range files {
		if without[name] != what {
			added[name] = what
		}
	}
	return added
}
