package hostplugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/internal/connection"
	"github.com/ndbridge/ndbridge/internal/running"
)

// Target is a program that runs already: see [Socket], [Name] and [PID].
type Target struct {
	name  string
	find  func(ctx context.Context) (running.Connected, error)
	later func(err error) bool // whether the program may still begin
	waits bool
}

// Await is the same program, which need not have begun: Attach waits until it listens, or until the context of Attach ends, whose error it
// wraps then. A process that is not there is not waited for.
func (t Target) Await() Target {
	t.waits = true
	return t
}

// awaitPause is how long Await waits before it looks again: there is no news of a program's beginning.
const awaitPause = 20 * time.Millisecond

// connect finds the program, and waits for it if it shall.
func (t Target) connect(ctx context.Context) (running.Connected, error) {
	for {
		found, err := t.find(ctx)
		if err == nil || !t.waits || !t.later(err) {
			return found, err
		}
		select {
		case <-time.After(awaitPause):
		case <-ctx.Done():
			e := &core.Error{Op: "attach", Program: t.name, Kind: ctx.Err(), Err: fmt.Errorf("the program has not begun to listen: %w", err)}
			if known, ok := errors.AsType[*core.Error](err); ok {
				e.Err, e.Remedy = fmt.Errorf("the program has not begun to listen: %w", known.Err), known.Remedy
			}
			return running.Connected{}, e
		}
	}
}

// Socket is the program that listens at a path, which ndbridge.listen in Python has returned.
func Socket(path string) Target {
	return Target{
		name: path,
		find: func(ctx context.Context) (running.Connected, error) { return running.Dial(ctx, path) },
		later: func(err error) bool {
			return errors.Is(err, core.ErrNotFound) || errors.Is(err, syscall.ECONNREFUSED) // of one that was killed
		},
	}
}

// Name is the program of this user that listens under a name: that which it has given to ndbridge.listen, or else that of its script, with
// its rank behind it below "ndbridge run --share". Of several programs of that name, it is the one that has started all others.
func Name(name string) Target {
	return Target{
		name:  name,
		find:  func(ctx context.Context) (running.Connected, error) { return running.Find(ctx, name) },
		later: func(err error) bool { return errors.Is(err, core.ErrNotFound) },
	}
}

// PID is the program that is a process of that number. With Python 3.14 it need not listen: its main thread is asked to let the host in, as
// sys.remote_exec does, at the next instruction that it runs. The host must be allowed to write to the process's memory.
func PID(pid int) Target {
	return Target{
		name: strconv.Itoa(pid),
		find: func(ctx context.Context) (running.Connected, error) {
			return running.FindProcess(ctx, pid, bootstrap.AskCode)
		},
		later: func(err error) bool {
			return running.Alive(pid) && (errors.Is(err, core.ErrNotFound) || errors.Is(err, core.ErrVersion) || errors.Is(err, core.ErrUnavailable))
		},
	}
}

// Attach opens a session with a program that runs already and lets hosts come to it (ndbridge.listen in Python, or "ndbridge run --share"). The session is like one of
// [Host.Start], but for the program's life, which is not the host's: [Session.Close] closes the views and gives everything back that the
// program kept for the host, and the program goes on. When the program ends, so does the session, and [Session.Wait] returns an error.
// What the program prints is its own. Several hosts may attach to one program, and one host several times; each has a session of its own.
//
// If the configuration has a program of the same name, its settings hold, as far as they do not concern the start: those for views and calls,
// start_timeout, which limits Attach, and the plugin. The plugin is loaded into the program's process when the first host attaches, and stays.
//
// A program that has not begun is waited for if the target is one of [Target.Await].
//
// The errors wrap core.ErrNotFound (no such program listens), core.ErrConfig (several do, none of which has started the others, or it is another user's, or the plugin is missing),
// core.ErrVersion (a host of another release has attached before), core.ErrUnavailable (the program has ended, or does not answer),
// core.ErrClosed, or the error of ctx. The program goes on after an error.
func (h *Host) Attach(ctx context.Context, t Target) (*Session, error) {
	return h.begin("attach", t.name, func() (*Session, error) {
		if t.find == nil {
			return nil, (&launch{op: "attach"}).fail("make it with Socket, Name or PID", "the target is none")
		}
		if err := checkSystem(); err != nil {
			return nil, (&launch{program: Program{Name: t.name}, op: "attach"}).about(err)
		}
		found, err := t.connect(ctx)
		if err != nil {
			return nil, err
		}
		l := h.attachment(found)
		if err := l.findPlugin(h.LibDirs()); err != nil {
			_ = found.Side.Close() // nothing was sent
			return nil, err
		}
		return h.open(ctx, "attach", l, func(opts connection.Options) (*connection.Connection, error) {
			return connection.Attach(opts, found.Side, found.PID)
		})
	})
}

// attachment gives what the configuration says of a program that runs already.
func (h *Host) attachment(found running.Connected) *launch {
	p := Program{Name: found.Name}
	if i := slices.IndexFunc(h.cfg.Programs, func(p Program) bool { return p.Name == found.Name }); i >= 0 && h.cfg.Programs[i].python() {
		p = h.cfg.Programs[i].clone()
	}
	p.Script, p.Module = "", "__main__" // it is Python's
	return &launch{program: p, op: "attach"}
}

// Child is a Python process that comes from the program of a session, directly or by way of others.
type Child struct {
	PID    int
	Parent int    // the program's process, or that of another of its children
	Name   string // under which it listens, or ""
	Err    error  // why no host can attach to it, or nil
}

// Children lists the Python processes that come from the program and run now: its multiprocessing children, the ranks of a launcher, the
// workers of a server. [Host.Attach] with PID(child.PID) attaches to one whose Err is nil. Those that the kernel does not show to this
// process are not listed.
//
// The error wraps core.ErrUnavailable if the program is gone, or is that of ctx.
func (s *Session) Children(ctx context.Context) ([]Child, error) {
	if err := cmp.Or(s.Err(), ctx.Err()); err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(s.conn.Process.ID())
	if err != nil || pid == 0 {
		return nil, &core.Error{
			Op: "children", Program: s.launch.program.Name, Kind: core.ErrUnsupported,
			Err: errors.New("the program's process cannot be seen from here"), Remedy: "run the host where the program's processes are seen",
		}
	}
	var children []Child
	for _, p := range running.Below(pid) {
		children = append(children, Child{PID: p.PID, Parent: cmp.Or(p.Parent, pid), Name: p.Name, Err: p.Err})
	}
	return children, nil
}
