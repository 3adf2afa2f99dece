package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// startError finds out why a start failed, from everything that is known: who ended it, what the
// program said on the side socket, how it exited, what it printed, and at last what go-plugin thinks.
// The program has ended.
func (c *Connection) startError(ctx context.Context, ended, err error) error {
	e := &core.Error{Op: c.op(), Program: c.opts.Program}
	timedOut := errors.Is(ended, errStartTimeout)
	switch {
	case errors.Is(ended, core.ErrClosed):
		e.Kind, e.Err = core.ErrClosed, errors.New("the host was closed meanwhile")
		return e
	case ctx.Err() != nil:
		e.Kind, e.Err = ctx.Err(), context.Cause(ctx)
		return e
	}
	for _, stage := range []string{wire.StageError, wire.StageLost} {
		if said, ok := c.stage(stage); ok {
			return c.told(said.Err())
		}
	}
	if remote, ok := errors.AsType[*core.Error](err); ok && remote.Remote {
		return c.told(remote)
	}
	switch _, isPython := c.stage(wire.StagePython); {
	case c.otherVersion(e):
	case c.attached():
		c.didNotAttach(e, err, timedOut)
	case c.killed(e):
	case errors.Is(err, syscall.ENOEXEC) || c.opts.Python && !isPython:
		c.notPython(e, err, timedOut)
	case timedOut:
		e.Kind = core.ErrUnavailable
		e.Err = fmt.Errorf("the plugin did not answer within %s%s", c.opts.StartTimeout, c.LastErrors())
		e.Remedy = "raise start_timeout if the program is only slow to start"
	default:
		c.didNotStart(e, err)
	}
	return e
}

func (c *Connection) op() string {
	if c.attached() {
		return "attach"
	}
	return "start"
}

// told completes an error that the program's side has made.
func (c *Connection) told(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	said := *e
	said.Op, said.Program = c.op(), c.opts.Program
	return &said
}

// otherVersion recognises a handshake of another version.
func (c *Connection) otherVersion(e *core.Error) bool {
	line, ok := parseGreeting(c.Process.Greeting())
	if !ok || line.current() {
		return false
	}
	e.Kind = core.ErrVersion
	e.Err = fmt.Errorf("the plugin %s speaks version %d.%d of the protocol, this host version 1.%d",
		c.opts.Plugin, line.Core, line.Version, wire.ProtocolVersion)
	e.Remedy = "use host and plugin of the same release"
	return true
}

// killed recognises a program that died of a signal of somebody else's, which may strike at any moment:
// even while Python begins, which then exits if it was an interrupt.
func (c *Connection) killed(e *core.Error) bool {
	how, own := c.Process.Exit()
	interrupted := c.opts.Python && strings.HasSuffix(c.Process.LastErrors(), "KeyboardInterrupt")
	if !own || c.Process.Signal() == 0 && !interrupted {
		return false
	}
	e.Kind, e.Err = core.ErrUnavailable, fmt.Errorf("the program %s before it was ready%s", how, c.LastErrors())
	return true
}

// notPython is for an interpreter, or an executable, that never ran what it was given.
func (c *Connection) notPython(e *core.Error, err error, timedOut bool) {
	e.Kind = core.ErrConfig
	what := "a Python interpreter that works"
	e.Remedy = "set python to the interpreter that runs your script"
	if !c.opts.Python {
		what = "a program for this machine"
		e.Remedy = "set script or module if the plugin is for a Python program"
	}
	how, own := c.Process.Exit()
	switch {
	case c.Process.ID() == "": // it could not be executed
		e.Err = fmt.Errorf("%s is not %s: %w", c.opts.Process.Path, what, rootCause(err))
	case own && muslRefused(c.Process.LastErrors()):
		e.Kind = core.ErrUnavailable
		e.Err = fmt.Errorf("%s starts a Python that is linked with musl, and the shared heap needs glibc%s", c.opts.Process.Path, c.LastErrors())
		e.Remedy = "use a CPython for glibc, as in an image with Debian: python:3-slim instead of python:3-alpine"
	case own:
		e.Err = fmt.Errorf("%s is not %s: it %s%s", c.opts.Process.Path, what, how, c.LastErrors())
	case timedOut:
		e.Err = fmt.Errorf("%s is not %s: it did nothing for %s%s",
			c.opts.Process.Path, what, c.opts.StartTimeout, c.LastErrors())
		e.Remedy += ", or raise start_timeout if it is only slow"
	default:
		e.Err = fmt.Errorf("%s is not %s: it printed %q%s", c.opts.Process.Path, what, c.greeting(), c.LastErrors())
	}
}

// muslRefused recognises what musl's loader says of a library for glibc. An interpreter with musl gets no shared heap, but a script that
// starts one does: it could start any.
func muslRefused(words string) bool {
	return strings.HasPrefix(words, "Error relocating ") || strings.HasPrefix(words, "Error loading shared library ")
}

// didNotStart is for what came up as far as the plugin, or is one itself.
func (c *Connection) didNotStart(e *core.Error, err error) {
	how, own := c.Process.Exit()
	switch known, ok := errors.AsType[*core.Error](err); {
	case c.Process.ID() == "":
		e.Kind, e.Err = core.ErrConfig, fmt.Errorf("%s cannot be executed: %w", c.opts.Process.Path, rootCause(err))
		e.Remedy = "correct plugin, dir and the file's permissions"
	case ok && !errors.Is(known.Kind, core.ErrUnavailable):
		e.Kind, e.Err, e.Remedy = known.Kind, known.Err, known.Remedy
	case own:
		e.Kind, e.Err = core.ErrUnavailable, fmt.Errorf("the program %s before it was ready%s", how, c.LastErrors())
	case c.Process.Greeting() != "" && errors.Is(err, errGreeting):
		e.Kind = core.ErrProtocol
		e.Err = fmt.Errorf("%s is not a plugin: it printed %q instead of a handshake%s",
			c.opts.Process.Path, c.greeting(), c.LastErrors())
		e.Remedy = "set script or module if the plugin is for a Python program"
	default:
		e.Kind, e.Err = core.ErrProtocol, fmt.Errorf("the plugin did not open a session: %w%s", err, c.LastErrors())
	}
}

// greeting is the first line on descriptor 1, in a length that fits an error.
func (c *Connection) greeting() string {
	const limit = 200
	line := c.Process.Greeting()
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "..."
	}
	return line
}

// LastErrors words what the program last wrote to its standard error, to be appended to a cause.
func (c *Connection) LastErrors() string {
	text := c.Process.LastErrors()
	if text == "" {
		return ""
	}
	if !strings.Contains(text, "\n") {
		return fmt.Sprintf("; its last words: %q", text)
	}
	return "; its last words:\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// rootCause is the error that the operating system gave.
func rootCause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
