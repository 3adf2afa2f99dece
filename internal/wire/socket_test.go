package wire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// dialed gives a connection through a host's side, and the plugin's end of the side socket.
func dialed(t *testing.T) (*grpc.ClientConn, *wire.Side, *fdpass.Conn) {
	t.Helper()
	conn, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	peer, err := fdpass.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	side := wire.NewSide(conn, nil, nil)
	cc, err := grpc.NewClient("passthrough:nobody", wire.Dialer(side), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cc.Close(), side.Close(), peer.Close()); err != nil {
			t.Error(err)
		}
	})
	return cc, side, peer
}

// path opens a path as a plugin does that listens at it.
func path(t *testing.T, name string) *os.File {
	t.Helper()
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// become waits for a state of the connection.
func become(t *testing.T, cc *grpc.ClientConn, want connectivity.State) {
	t.Helper()
	cc.Connect()
	for state := cc.GetState(); state != want; state = cc.GetState() {
		if !cc.WaitForStateChange(t.Context(), state) {
			t.Fatalf("the connection is %v, want %v", state, want)
		}
	}
}

// TestDial: the host reaches a socket that has no path any more, by the descriptor alone.
func TestDial(t *testing.T) {
	t.Parallel()
	cc, _, peer := dialed(t)
	dir := t.TempDir()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }() // until Stop
	defer server.Stop()
	file := path(t, filepath.Join(dir, "s"))
	if err := os.Remove(file.Name()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second one changes nothing
		if err := peer.Send([]byte("L"), file); err != nil {
			t.Fatal(err)
		}
	}
	become(t, cc, connectivity.Ready)
}

// TestDialRefused has plugins that send something else, or nothing.
func TestDialRefused(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(t *testing.T, side *wire.Side, peer *fdpass.Conn) error{
		"nothing":     func(*testing.T, *wire.Side, *fdpass.Conn) error { return nil },
		"no socket":   func(_ *testing.T, _ *wire.Side, peer *fdpass.Conn) error { return peer.Send([]byte("L")) },
		"a directory": func(t *testing.T, _ *wire.Side, peer *fdpass.Conn) error { return peer.Send([]byte("L"), path(t, "/")) },
		"the end":     func(_ *testing.T, _ *wire.Side, peer *fdpass.Conn) error { return peer.Close() },
		"the host's":  func(_ *testing.T, side *wire.Side, _ *fdpass.Conn) error { return side.Close() },
		"two sockets": func(t *testing.T, _ *wire.Side, peer *fdpass.Conn) error {
			return peer.Send([]byte("L"), path(t, "/"), path(t, "/"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cc, side, peer := dialed(t)
			if err := send(t, side, peer); err != nil {
				t.Fatal(err)
			}
			become(t, cc, connectivity.TransientFailure)
		})
	}
}

// TestUnclaimedSocketIsClosed: what nobody connects to does not stay open.
func TestUnclaimedSocketIsClosed(t *testing.T) {
	t.Parallel()
	_, side, peer := dialed(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := errors.Join(peer.Send([]byte("L"), w), w.Close(), peer.Close()); err != nil {
		t.Fatal(err)
	}
	<-side.Done()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read = %v", err)
	}
}

// TestSweepDirs: only what a plugin has left goes, and only once it is old.
func TestSweepDirs(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "with [brackets]")
	var dirs []string
	for range 4 {
		dirs = append(dirs, wire.NewSocketDir(parent))
	}
	empty, full, young, foreign, other := dirs[0], dirs[1], dirs[2], dirs[3], filepath.Join(parent, "ndbridge-data")
	for _, dir := range []string{empty, full, young, foreign, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{full + "/plugin123", foreign + "/data"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{empty, full, foreign, other} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	wire.SweepSocketDirs(parent)
	wire.SweepSocketDirs(filepath.Join(parent, "missing"))
	want := []string{young, foreign, other}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, filepath.Join(parent, e.Name()))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
