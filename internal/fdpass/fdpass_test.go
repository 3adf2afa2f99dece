package fdpass_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// TestMain also fails if the tests together left a descriptor open.
func TestMain(m *testing.M) {
	warm, peer, err := fdpass.Pair() // the runtime's poller opens descriptors of its own, once
	if err != nil {
		panic(err)
	}
	if err := errors.Join(warm.Close(), peer.Close()); err != nil {
		panic(err)
	}
	before := openFDs()
	status := m.Run()
	if after := openFDs(); status == 0 && len(after) != len(before) {
		fmt.Fprintf(os.Stderr, "descriptors leaked: before %v, after %v\n", before, after)
		status = 1
	}
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func openFDs() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	var fds []string
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err == nil && !strings.HasPrefix(target, "/proc/") { // not the directory being read
			fds = append(fds, e.Name()+"="+target)
		}
	}
	return fds
}

func pair(t *testing.T) (a, b *fdpass.Conn) {
	t.Helper()
	a, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	b, err = fdpass.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
	return a, b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func TestMessagesKeepBoundariesAndOrder(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	want := []string{"one", "a longer second message", strings.Repeat("x", fdpass.MaxMessage)}
	for _, m := range want {
		if err := a.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
		got, files, err := b.Recv()
		if err != nil || len(files) != 0 || string(got) != m {
			t.Fatalf("Recv = %d bytes, %d files, %v; want %d bytes", len(got), len(files), err, len(m))
		}
	}
	if err := b.Send([]byte("back")); err != nil {
		t.Fatal(err)
	}
	if got, _, err := a.Recv(); err != nil || string(got) != "back" {
		t.Fatalf("Recv = %q, %v", got, err)
	}
}

func TestFilesArriveOpenAndCloseOnExec(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	var readers, writers []*os.File
	for range fdpass.MaxFiles {
		r, w := pipe(t)
		readers, writers = append(readers, r), append(writers, w)
	}
	if err := a.Send([]byte("files"), writers...); err != nil {
		t.Fatal(err)
	}
	_, files, err := b.Recv()
	if err != nil || len(files) != fdpass.MaxFiles {
		t.Fatalf("Recv = %d files, %v", len(files), err)
	}
	for i, f := range files {
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("file %d: flags %#x, %v: not close-on-exec", i, flags, err)
		}
		if err := writers[i].Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(f, "pipe %d", i); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(readers[i])
		if want := fmt.Sprintf("pipe %d", i); err != nil || string(got) != want {
			t.Errorf("pipe %d carried %q, %v", i, got, err)
		}
	}
}

func TestEndOfPeer(t *testing.T) {
	t.Parallel()
	t.Run("clean", func(t *testing.T) {
		t.Parallel()
		a, b := pair(t)
		if err := a.Send([]byte("last")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := b.Recv(); err != nil || string(got) != "last" {
			t.Fatalf("Recv = %q, %v; want the message sent before Close", got, err)
		}
		if _, _, err := b.Recv(); !errors.Is(err, io.EOF) {
			t.Fatalf("Recv = %v; want EOF", err)
		}
		if err := b.Send([]byte("x")); !errors.Is(err, unix.EPIPE) {
			t.Fatalf("Send = %v; want EPIPE", err)
		}
	})
	t.Run("with unread messages", func(t *testing.T) {
		t.Parallel()
		a, b := pair(t)
		if err := b.Send([]byte("never read")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Recv(); !errors.Is(err, io.EOF) {
			t.Fatalf("Recv = %v; want EOF", err)
		}
	})
}

func TestCloseUnblocksRecv(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	got := make(chan error, 1)
	go func() {
		_, _, err := a.Recv()
		got <- err
	}()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Recv = %v; want os.ErrClosed", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Recv still waits after Close")
	}
	if err := a.Close(); err != nil {
		t.Fatalf("second Close = %v", err)
	}
	if err := a.Send([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Send after Close = %v; want os.ErrClosed", err)
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	r, _ := pipe(t)
	closed, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(closed.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		msg   []byte
		files []*os.File
		want  error
	}{
		"empty":       {nil, nil, unix.EMSGSIZE},
		"too long":    {make([]byte, fdpass.MaxMessage+1), nil, unix.EMSGSIZE},
		"many files":  {[]byte("x"), slices.Repeat([]*os.File{r}, fdpass.MaxFiles+1), unix.EMSGSIZE},
		"closed file": {[]byte("x"), []*os.File{r, closed}, os.ErrClosed},
	} {
		if err := a.Send(c.msg, c.files...); !errors.Is(err, c.want) {
			t.Errorf("%s: Send = %v; want %v", name, err, c.want)
		}
	}
}

// hostilePeer sends what Send would refuse.
func hostilePeer(t *testing.T) (c *fdpass.Conn, fd int) {
	t.Helper()
	c, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), file.Close() })
	return c, int(file.Fd())
}

// TestHostileMessagesLeakNothing sends pipes' writing ends in messages that must be refused: if one
// of them were kept open, reading the pipe would not come to an end.
func TestHostileMessagesLeakNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		msg   []byte
		files int
		want  error
	}{
		"one file too many":       {[]byte("D"), fdpass.MaxFiles + 1, fdpass.ErrTruncated},
		"as many as Linux allows": {[]byte("D"), 253, fdpass.ErrTruncated},
		"message too long":        {make([]byte, fdpass.MaxMessage+1), 1, fdpass.ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, peer := hostilePeer(t)
			r, w := pipe(t)
			rights := unix.UnixRights(slices.Repeat([]int{int(w.Fd())}, c.files)...)
			if err := unix.Sendmsg(peer, c.msg, rights, nil, 0); err != nil {
				t.Fatal(err)
			}
			msg, files, err := conn.Recv()
			if !errors.Is(err, c.want) || files != nil {
				t.Fatalf("Recv = %d files, %v; want none and %v", len(files), err, c.want)
			}
			if want := c.msg[:min(len(c.msg), fdpass.MaxMessage)]; !slices.Equal(msg, want) {
				t.Errorf("Recv gave %d bytes, want %d", len(msg), len(want))
			}
			if err := unix.Sendmsg(peer, []byte("good"), nil, nil, 0); err != nil {
				t.Fatal(err)
			}
			if msg, _, err := conn.Recv(); err != nil || string(msg) != "good" {
				t.Fatalf("next Recv = %q, %v: the connection did not stay usable", msg, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatalf("pipe read = %v; want EOF: a received descriptor stays open", err)
			}
		})
	}
}

func TestConcurrentSendersKeepMessagesWhole(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 200
	a, b := pair(t)
	file, _ := pipe(t)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for range each {
				if err := a.Send(slices.Repeat([]byte{byte('a' + s)}, 100+s), file); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	counts := make(map[byte]int)
	for range senders * each {
		msg, files, err := b.Recv()
		if err != nil || len(files) != 1 {
			t.Fatalf("Recv = %d files, %v", len(files), err)
		}
		if err := files[0].Close(); err != nil {
			t.Fatal(err)
		}
		if len(msg) != 100+int(msg[0]-'a') || len(slices.Compact(slices.Clone(msg))) != 1 {
			t.Fatalf("mixed message %q", msg)
		}
		counts[msg[0]]++
	}
	wg.Wait()
	for s := range senders {
		if n := counts[byte('a'+s)]; n != each {
			t.Errorf("sender %d: %d messages came, want %d", s, n, each)
		}
	}
}

func TestFromFileKeepsDescriptorOfNonblockingFile(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fdpass.FromFile(os.NewFile(uintptr(fds[0]), "side"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendmsg(fds[1], []byte("hello"), nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	if msg, _, err := c.Recv(); err != nil || string(msg) != "hello" {
		t.Fatalf("Recv = %q, %v", msg, err)
	}
	if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0); err != nil {
		t.Errorf("descriptor %d was given up: %v", fds[0], err)
	}
	if err := errors.Join(c.Close(), unix.Close(fds[1])); err != nil {
		t.Fatal(err)
	}
}

func TestNotASocket(t *testing.T) {
	t.Parallel()
	r, _ := pipe(t)
	if _, err := fdpass.FromFile(r); !errors.Is(err, unix.ENOTSOCK) {
		t.Errorf("FromFile(pipe) = %v; want ENOTSOCK", err)
	}
	if _, err := fdpass.FromFD(1 << 20); !errors.Is(err, unix.EBADF) {
		t.Errorf("FromFD of no descriptor = %v; want EBADF", err)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fdpass.FromFD(fds[0]); !errors.Is(err, unix.EPROTOTYPE) {
		t.Errorf("FromFD(stream socket) = %v; want EPROTOTYPE", err)
	}
	if err := errors.Join(unix.Close(fds[0]), unix.Close(fds[1])); err != nil {
		t.Fatal(err)
	}
}

func TestSendGivesUpOnAPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	msg := make([]byte, fdpass.MaxMessage)
	sent := 0
	for ; sent < 1000; sent++ {
		start := time.Now()
		if err := a.Send(msg); err != nil {
			if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took > 20*time.Second {
				t.Fatalf("Send = %v after %v; want os.ErrDeadlineExceeded", err, took)
			}
			break
		}
	}
	if sent == 0 || sent == 1000 {
		t.Fatalf("%d messages were sent to a peer that does not read", sent)
	}
	for range sent { // what was sent arrives, and then there is room again
		if _, _, err := b.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Send(msg); err != nil {
		t.Fatalf("Send when there is room again = %v", err)
	}
}
