package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// startError finds out why a start failed, from everything that is known: who ended it, what the
// program said on the side socket, how it exited, what it printed, and at last what go-plugin thinks.
// The program has ended.
func (c *connection) startError(ctx context.Context, ended, err error) error {
	e := &core.Error{Op: "start", Program: c.launch.program.Name}
	timedOut := errors.Is(ended, errStartTimeout)
	switch {
	case errors.Is(ended, core.ErrClosed):
		e.Kind, e.Err = core.ErrClosed, errors.New("the host was closed meanwhile")
		return e
	case ctx.Err() != nil:
		e.Kind, e.Err = ctx.Err(), context.Cause(ctx)
		return e
	}
	if status, ok := c.stage(wire.StageError); ok {
		return c.told(status.Err())
	}
	if remote, ok := errors.AsType[*core.Error](err); ok && remote.Remote {
		return c.told(remote)
	}
	switch _, isPython := c.stage(wire.StagePython); {
	case c.otherVersion(e):
	case errors.Is(err, syscall.ENOEXEC) || c.launch.program.python() && !isPython:
		c.notPython(e, err, timedOut)
	case timedOut:
		e.Kind = core.ErrUnavailable
		e.Err = fmt.Errorf("the plugin did not answer within %s%s", c.launch.program.startTimeout(), c.lastErrors())
		e.Remedy = "raise start_timeout if the program is only slow to start"
	default:
		c.didNotStart(e, err)
	}
	return e
}

// told completes an error that the program's side has made.
func (c *connection) told(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	said := *e
	said.Op, said.Program = "start", c.launch.program.Name
	return &said
}

// otherVersion recognises a handshake of another version, which go-plugin reports as text only.
func (c *connection) otherVersion(e *core.Error) bool {
	parts := strings.Split(c.process.Greeting(), "|")
	if len(parts) < 4 {
		return false
	}
	version, err := strconv.Atoi(parts[1])
	if err != nil || parts[0] == "1" && version == wire.ProtocolVersion {
		return false
	}
	e.Kind = core.ErrVersion
	e.Err = fmt.Errorf("the plugin %s speaks version %s.%d of the protocol, this host version 1.%d",
		c.launch.plugin, parts[0], version, wire.ProtocolVersion)
	e.Remedy = "use host and plugin of the same release"
	return true
}

// notPython is for an interpreter, or an executable, that never ran what it was given.
func (c *connection) notPython(e *core.Error, err error, timedOut bool) {
	e.Kind = core.ErrConfig
	what := "a Python interpreter that works"
	e.Remedy = "set python to the interpreter that runs your script"
	if !c.launch.program.python() {
		what = "a program for this machine"
		e.Remedy = "set script or module if the plugin is for a Python program"
	}
	how, own := c.process.Exit()
	switch {
	case c.process.ID() == "": // it could not be executed
		e.Err = fmt.Errorf("%s is not %s: %w", c.launch.path, what, rootCause(err))
	case own:
		e.Err = fmt.Errorf("%s is not %s: it %s%s", c.launch.path, what, how, c.lastErrors())
	case timedOut:
		e.Err = fmt.Errorf("%s is not %s: it did nothing for %s%s",
			c.launch.path, what, c.launch.program.startTimeout(), c.lastErrors())
	default:
		e.Err = fmt.Errorf("%s is not %s: it printed %q%s", c.launch.path, what, c.greeting(), c.lastErrors())
	}
}

// didNotStart is for what came up as far as the plugin, or is one itself.
func (c *connection) didNotStart(e *core.Error, err error) {
	how, own := c.process.Exit()
	handshake := strings.Count(c.process.Greeting(), "|") >= 3
	switch known, ok := errors.AsType[*core.Error](err); {
	case c.process.ID() == "":
		e.Kind, e.Err = core.ErrConfig, fmt.Errorf("%s cannot be executed: %w", c.launch.path, rootCause(err))
		e.Remedy = "correct plugin, dir and the file's permissions"
	case ok && !errors.Is(known.Kind, core.ErrUnavailable):
		e.Kind, e.Err, e.Remedy = known.Kind, known.Err, known.Remedy
	case own:
		e.Kind, e.Err = core.ErrUnavailable, fmt.Errorf("the program %s before it was ready%s", how, c.lastErrors())
	case c.process.Greeting() != "" && !handshake:
		e.Kind = core.ErrProtocol
		e.Err = fmt.Errorf("%s is not a plugin: it printed %q instead of a handshake%s",
			c.launch.path, c.greeting(), c.lastErrors())
		e.Remedy = "set script or module if the plugin is for a Python program"
	default:
		e.Kind, e.Err = core.ErrProtocol, fmt.Errorf("the plugin did not open a session: %w%s", err, c.lastErrors())
	}
}

// greeting is the first line on descriptor 1, in a length that fits an error.
func (c *connection) greeting() string {
	const limit = 200
	line := c.process.Greeting()
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "..."
	}
	return line
}

// lastErrors words what the program last wrote to its standard error, to be appended to a cause.
func (c *connection) lastErrors() string {
	text := c.process.LastErrors()
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
