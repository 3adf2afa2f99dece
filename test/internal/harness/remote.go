package harness

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Remote runs Python code in a program that serves remote.py.
type Remote struct {
	socket   string
	listener *net.UnixListener
	mu       sync.Mutex
	conn     net.Conn
	lines    *bufio.Reader
}

// NewRemote listens for one program until the test ends.
func NewRemote(tb testing.TB) *Remote {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ndr") //nolint:usetesting // a test's own folder may be too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	r := &Remote{socket: filepath.Join(dir, "remote")}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"})
	if err != nil {
		tb.Fatal(err)
	}
	r.listener = listener
	tb.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		listener.Close()
		if r.conn != nil {
			r.conn.Close()
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// Exec runs statements in the program's __main__.
func (r *Remote) Exec(tb testing.TB, code string) {
	tb.Helper()
	r.ask(tb, map[string]string{"exec": code}, nil)
}

// Eval evaluates an expression in r's program; its value must be what JSON can carry and T hold.
func Eval[T any](tb testing.TB, r *Remote, expression string) T {
	tb.Helper()
	var value T
	r.ask(tb, map[string]string{"eval": expression}, &value)
	return value
}

func (r *Remote) ask(tb testing.TB, request map[string]string, value any) {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	deadline := time.Now().Add(StartBound + 30*time.Second)
	if r.conn == nil {
		if err := r.listener.SetDeadline(deadline); err != nil {
			tb.Fatal(err)
		}
		conn, err := r.listener.Accept()
		if err != nil {
			tb.Fatalf("the program did not serve remote.py: %v", err)
		}
		r.use(conn)
	}
	if err := r.conn.SetDeadline(deadline); err != nil {
		tb.Fatal(err)
	}
	line, err := json.Marshal(request)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.conn.Write(append(line, '\n')); err != nil {
		tb.Fatalf("%v: %v", request, err)
	}
	line, err = r.lines.ReadBytes('\n')
	if err != nil {
		tb.Fatalf("%v: %v", request, err)
	}
	answer := struct {
		Value any
		Error string
	}{Value: value}
	if err := json.Unmarshal(line, &answer); err != nil {
		tb.Fatalf("%v: %v", request, err)
	}
	if answer.Error != "" {
		tb.Fatalf("%v: %s", request, answer.Error)
	}
}

func (r *Remote) use(conn net.Conn) { r.conn, r.lines = conn, bufio.NewReader(conn) }

// called reports whether the program serves remote.py.
func (r *Remote) called() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		return true
	}
	_ = r.listener.SetDeadline(time.Now().Add(time.Millisecond)) // Accept fails then
	conn, err := r.listener.Accept()
	if err == nil {
		r.use(conn)
	}
	return err == nil
}
