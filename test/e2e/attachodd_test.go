package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestAttachLeavesSockets: a host that looks for a program which is about to listen, but does not yet, leaves its socket where it is.
func TestAttachLeavesSockets(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "ndbridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "ndbridge", "begins."+strconv.Itoa(os.Getpid()))
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.NewHost(t).Attach(t.Context(), hostplugin.Name("begins")); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("attach: %v", err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of a program that begins to listen: %v", err)
	}
}
