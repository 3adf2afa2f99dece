package running

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// askWait bounds the wait for a process that was asked to let a host in: its main thread may be in a call that does not end.
const askWait = 10 * time.Second

// askPause is how long a process has to come when it has taken the question, before it is asked again.
const askPause = time.Second

// ask has a Python process that does not listen come to this one, by a script that code makes for a socket, and gives the connection.
func ask(ctx context.Context, pid int, code func(socket string) []byte) (*fdpass.Conn, error) {
	thread, err := askable(pid)
	if err != nil {
		return nil, err
	}
	defer thread.memory.Close() //nolint:errcheck // the process's
	turn, err := takeTurn(ctx, pid)
	if err != nil {
		return nil, err
	}
	defer turn.Close()                               //nolint:errcheck // only read from
	dir, err := os.MkdirTemp("", "ndbridge-attach-") // mode 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's place for what is temporary
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	socket, script := filepath.Join(dir, "s"), filepath.Join(dir, "attach.py")
	listener, err := fdpass.Listen(socket)
	if err != nil {
		return nil, err
	}
	defer listener.Close() //nolint:errcheck // nobody else can come
	if err := os.WriteFile(script, code(socket), 0o600); err != nil {
		return nil, err
	}
	if err := give(pid, dir, socket, script); err != nil {
		return nil, err
	}
	if err := thread.outwait(ctx); err != nil {
		return nil, err
	}
	if err := thread.run(script); err != nil {
		return nil, err
	}
	ctx, cancelCause := context.WithCancelCause(ctx)
	waits := errors.New("its main thread runs no Python code, but waits in a call, say")
	ctx, cancel := context.WithTimeoutCause(ctx, askWait, &core.Error{
		Kind: core.ErrUnavailable, Err: fmt.Errorf("the process has not come within %s: %w", askWait, waits),
		Remedy: "try again when it does, or let the program call ndbridge.listen()",
	})
	defer cancel()
	defer thread.insist(ctx, script, cancelCause)()
	for {
		side, peer, err := listener.Accept(ctx)
		if errors.Is(err, context.DeadlineExceeded) { // of the caller's context
			return nil, fmt.Errorf("the process has not come: %w", waits)
		}
		if err != nil {
			return nil, err
		}
		if peer.PID == pid {
			return side, nil
		}
		_ = side.Close() // somebody else
	}
}

// outwait waits until the thread has run what somebody else has asked it for who knows of no turns, such as a debugger. What it has not run
// within a second is a question of a host that was killed, or of somebody who can ask again.
func (t *mainThread) outwait(ctx context.Context) error {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(askPause); time.Now().Before(end); {
		if asked, err := t.asked(); err != nil || !asked {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// insist asks the thread again each second, as long as it has taken the script and nobody has come: Python cannot run a script where it meets
// code without builtins. If the interpreter ends, it calls fail. It gives what ends that, and takes the script back.
func (t *mainThread) insist(ctx context.Context, script string, fail context.CancelCauseFunc) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		for next := time.Now().Add(askPause); ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(startPause):
			}
			err := t.runs()
			if err == nil && time.Now().After(next) {
				err, next = t.again(script), time.Now().Add(askPause)
			}
			if err != nil {
				fail(err)
			}
		}
	})
	return func() {
		cancel()
		asking.Wait()
		t.withdraw()
	}
}

// takeTurn waits until no other host asks the process: it has room for one question. The turn ends with the file, and so with the host.
func takeTurn(ctx context.Context, pid int) (*os.File, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)) // which only those may that may ask
	if err != nil {
		return nil, notAllowed(pid, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askWait, &core.Error{
		Kind: core.ErrUnavailable, Err: errors.New("another host is asking the process"), Remedy: "try again",
	})
	defer cancel()
	const pause = 10 * time.Millisecond
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(err, file.Close())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		}
	}
}

// Askable says why a process that does not listen cannot be asked to let a host in; nil if it can.
func Askable(pid int) error {
	thread, err := askable(pid)
	if err == nil {
		err = thread.memory.Close()
	}
	return err
}

func askable(pid int) (*mainThread, error) {
	if err := sameFiles(pid); err != nil {
		return nil, err
	}
	return examine(pid)
}

// give makes files those of the process's user, whom root asks for something.
func give(pid int, files ...string) error {
	var stat unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &stat); err != nil {
		return &core.Error{Kind: core.ErrNotFound, Err: errors.New("there is no such process")}
	}
	if int(stat.Uid) == os.Geteuid() {
		return nil
	}
	for _, file := range files {
		if err := os.Lchown(file, int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// sameFiles holds that a process sees the files that this one sees, and is known here by its own number.
func sameFiles(pid int) error {
	for name, what := range map[string]string{"mnt": "file systems", "pid": "processes"} {
		ours, err1 := os.Readlink("/proc/self/ns/" + name)
		theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		if err1 == nil && err2 == nil && ours != theirs {
			return &core.Error{
				Kind: core.ErrConfig, Err: fmt.Errorf("the process is in another namespace of %s, a container", what),
				Remedy: "let the program call ndbridge.listen(path=...) with a socket in a volume that both have",
			}
		}
	}
	return nil
}
