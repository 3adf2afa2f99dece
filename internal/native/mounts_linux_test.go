package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// apart is set in the process of TestMounts that has mounts of its own.
const apart = "NDBRIDGE_TEST_APART"

// TestMounts unpacks into file systems that cannot hold or run files. It runs itself again where it may mount.
func TestMounts(t *testing.T) {
	t.Parallel()
	if os.Getenv(apart) == "" {
		attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			attr.Cloneflags |= unix.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestMounts$", "-test.v")
		cmd.SysProcAttr = attr
		cmd.Env = append(os.Environ(), apart+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "--- PASS: TestMounts/") != 3 {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	b := bundled(t, embed(t))
	for _, test := range []struct {
		name, options string
		flags         uintptr
		want          string
	}{
		{"noexec", "size=10m,mode=0700", unix.MS_NOEXEC, "is mounted noexec"},
		{"full disk", "size=64k,mode=0700", 0, "no space left on device"},
		{"read-only", "mode=0700", unix.MS_RDONLY, "read-only file system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			base, good := filepath.Join(t.TempDir(), "ndbridge"), filepath.Join(t.TempDir(), "ndbridge")
			if err := os.Mkdir(base, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("tmpfs", base, "tmpfs", test.flags, test.options); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
			dir, err := b.unpackIn([]place{{dir: base}, {dir: good}})
			if err != nil || filepath.Dir(dir) != good {
				t.Fatal(dir, err)
			}
			holds(t, dir)
			if _, err := b.unpackIn([]place{{dir: base}}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if left, err := filepath.Glob(filepath.Join(base, "*", temporary+"*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
