//go:build linux

package fdpass_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// TestDial connects to a socket by a path of any length, and both sides know each other's process and user.
func TestDial(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := filepath.Join(dir, "s")
	listener, err := fdpass.Listen(short)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	long := filepath.Join(dir, strings.Repeat("d", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(short, filepath.Join(long, "s")); err != nil {
		t.Fatal(err)
	}
	ours, peer, err := fdpass.Dial(t.Context(), filepath.Join(long, "s"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, other, err := listener.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (fdpass.Peer{PID: os.Getpid(), UID: os.Getuid()}); peer != want || other != want {
		t.Errorf("peers %+v and %+v, want %+v", peer, other, want)
	}
	if err := ours.Send([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if msg, _, err := theirs.Recv(); err != nil || string(msg) != "hello" {
		t.Errorf("%q, %v", msg, err)
	}
	if err := errors.Join(ours.Close(), theirs.Close()); err != nil {
		t.Error(err)
	}
}

// TestDialEnds: neither side waits longer than its context.
func TestDialEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := fdpass.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := listener.Accept(ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Accept: %v", err)
	}
	var all []*fdpass.Conn
	for { // until the queue is full
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		c, _, err := fdpass.Dial(short, path)
		cancel()
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial: %v", err)
			}
			break
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := fdpass.Dial(t.Context(), path); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("Dial after Close: %v", err)
	}
	if _, err := fdpass.Listen(path); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("Listen where a socket is: %v", err)
	}
}
