package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// Process is the program's process: a [process.Process], or a [process.Attached].
type Process interface {
	runner.AttachedRunner

	Start(ctx context.Context) error
	Discard()
	Greeted() <-chan struct{}
	Greeting() string
	Exited() <-chan struct{}
	Exit() (how string, own bool)
	Dying() bool
	Signal() syscall.Signal
	Status() int
	LastErrors() string
	CloseLog()
}

// errHungUp says that a program has sent the host away without a word.
var errHungUp = errors.New("the program did not let the host in: it has ended, has too few descriptors or threads left, or belongs to another user")

// Attach is New for a program that runs already, and listens: side is a connection to its socket, which Attach takes over, and pid the
// process's id, or 0. Nothing is started, and the end of the connection does not end the program.
func Attach(opts Options, side *fdpass.Conn, pid int) (*Connection, error) {
	c := &Connection{opts: opts, python: make(chan struct{}), lost: make(chan struct{})}
	if err := c.send(side); err != nil {
		c.closeStream()
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			err = errHungUp
		}
		return nil, errors.Join(err, side.Close())
	}
	c.Side = wire.NewSide(side, c.status, opts.Forked)
	leave := func() { _ = c.Side.Close() } // its error would be that it is closed
	c.Process = process.Attach(pid, c.Side.Done(), leave, c.Side.Greeting())
	return c, nil
}

// send sends the bootstrap, with the plugin's file and an end of the connection for gRPC.
func (c *Connection) send(side *fdpass.Conn) error {
	file, err := os.Open(c.opts.Plugin)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	stream, theirs, err := fdpass.StreamPair()
	if err != nil {
		return err
	}
	defer theirs.Close() //nolint:errcheck // the program has its own
	c.stream = stream
	return side.Send(bootstrap.AttachCode(c.opts.Plugin), file, theirs)
}

// fullAfter is how long a program may be silent before the host looks whether it can answer at all.
const fullAfter = 250 * time.Millisecond

// awaitGreeting waits until the plugin has said that it serves the host, or cannot.
func (c *Connection) awaitGreeting(ctx context.Context) error {
	silent := time.NewTicker(fullAfter)
	defer silent.Stop()
	for {
		select {
		case <-c.Process.Greeted():
			return nil
		case <-c.Process.Exited():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-silent.C:
			_, taken := c.stage(wire.StagePython)
			if p, ok := c.Process.(*process.Attached); ok && !taken && p.Full() {
				return &core.Error{
					Kind: core.ErrUnavailable, Err: errors.New("the program has no descriptor left, and cannot even take the connection"),
					Remedy: "raise its limit of open files (RLIMIT_NOFILE, ulimit -n)",
				}
			}
		}
	}
}

// attached reports whether the program ran before the host came.
func (c *Connection) attached() bool { return c.handshake == nil }

// dialStream gives gRPC its connection, once.
func (c *Connection) dialStream() grpc.DialOption {
	return grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.dialed || c.stream == nil {
			return nil, errors.New("the connection has ended")
		}
		c.dialed = true
		return c.stream, nil
	})
}

// closeStream closes the connection, whoever waits for something at it.
func (c *Connection) closeStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream != nil {
		_ = c.stream.Close() // nothing can be lost
	}
	c.stream = nil
}

// didNotAttach says why a program has not let the host in, if it has not said so itself.
func (c *Connection) didNotAttach(e *core.Error, err error, timedOut bool) {
	e.Kind = core.ErrUnavailable
	_, isPython := c.stage(wire.StagePython)
	switch known, ok := errors.AsType[*core.Error](err); {
	case timedOut:
		e.Err = fmt.Errorf("the program did not let the host in within %s", c.opts.StartTimeout)
		e.Remedy = "see whether it is stopped, holds Python's lock for long, or has no descriptors left; or raise start_timeout"
	case ok && (!errors.Is(known.Kind, core.ErrUnavailable) || known.Remedy != ""):
		e.Kind, e.Err, e.Remedy = known.Kind, known.Err, known.Remedy
	case isPython:
		how, _ := c.Process.Exit()
		e.Err = fmt.Errorf("the program %s before the session was open", how)
	default:
		e.Err = errHungUp
	}
}
