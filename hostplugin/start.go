package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/conns"
	"github.com/ndbridge/ndbridge/hostplugin/internal/environ"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/hostplugin/internal/shipped"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/wire"
)

const (
	// killDelay is how long a program may take to end by itself when it is told to. The plugin kills a
	// program whose script goes on for a second.
	killDelay = 2 * time.Second

	// lastWordsWait bounds the wait for what a program that did not start has said on the side socket.
	lastWordsWait = time.Second

	// maxSocketPath is what the directory of a socket may be long: the path of a socket has at most 107
	// bytes, and go-plugin appends two random names.
	maxSocketPath = 107 - len("/plugin-dir1234567890/plugin1234567890")
)

// errStartTimeout is the cause of a start's end by its own time limit.
var errStartTimeout = errors.New("start timeout")

// connection is a started program with its plugin: what a session stands on.
type connection struct {
	launch  *launch
	process *process.Process
	side    *wire.Side
	plugin  *plugin.Client
	client  *wire.Client
	handoff *handoff.Client // nil until the session is open, and if there is no shared memory
	stray   func(core.LeaseID)
	sockets string // a directory that holds go-plugin's, until the session is open
	conns   conns.Conns

	mu       sync.Mutex
	statuses []wire.Status
}

// start runs a prepared program and opens the session. After an error nothing is left of it.
func (h *Host) start(ctx context.Context, l *launch) (*Session, error) {
	s := newSession(h, l)
	found := gpus.Find(h.opts.log)
	c, err := h.connect(l, s) //nolint:contextcheck // its logs outlive the call
	if err != nil {
		return nil, &core.Error{Op: "start", Program: l.program.Name, Kind: core.ErrUnavailable, Err: err}
	}
	startCtx, cancel := context.WithTimeoutCause(ctx, l.program.startTimeout(), errStartTimeout)
	defer cancel()
	startCtx, abort := context.WithCancelCause(startCtx)
	defer abort(nil)
	defer context.AfterFunc(h.ctx, func() { abort(core.ErrClosed) })() //nolint:contextcheck // joins the two

	settings := func() wire.Settings {
		s.gpus = <-found
		return h.settings(l, s.gpus)
	}
	if err := c.open(startCtx, settings); err != nil {
		ended := context.Cause(startCtx) // before the end of the program can take time
		c.abort()                        //nolint:contextcheck // it ends what has started, whatever becomes of the call
		return nil, c.startError(ctx, ended, err)
	}
	s.begin(c) //nolint:contextcheck // a session outlives the call
	return s, nil
}

// settings gives the plugin's part of the configuration.
func (h *Host) settings(l *launch, hasGPUs []core.UUID) wire.Settings {
	out := wire.Settings{Program: l.program.Name, GPUs: hasGPUs, Handoff: l.program.handoff()}
	held, known := shipped.Adapters(l.program.plugin())
	for _, a := range h.cfg.Adapters {
		if known && !slices.Contains(held, a.Name) {
			continue // it is for a program with another plugin
		}
		settings := wire.AdapterSettings{Name: a.Name, Copy: a.Copy, Sync: a.Sync}
		for _, q := range a.Quirks {
			switch {
			case q.Disabled:
				settings.DisabledQuirks = append(settings.DisabledQuirks, q.ID)
			case q.Effect != "":
				if settings.QuirkEffects == nil {
					settings.QuirkEffects = make(map[core.QuirkID]string)
				}
				settings.QuirkEffects[q.ID] = q.Effect
			}
		}
		out.Adapters = append(out.Adapters, settings)
	}
	return out
}

// connect makes everything that a start needs, and starts nothing.
func (h *Host) connect(l *launch, s *Session) (*connection, error) {
	sockets, err := os.MkdirTemp(socketDir(), "ndbridge-")
	if err != nil {
		return nil, err
	}
	conn, peer, err := fdpass.Pair()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(sockets))
	}
	log := h.opts.log.With(slog.String("program", l.program.Name))
	c := &connection{launch: l, sockets: sockets, stray: s.stray}
	c.side = wire.NewSide(conn, c.status, s.forked)
	c.process = process.New(l.spec(), peer, process.Options{Log: log, Stdout: h.opts.stdout, Stderr: h.opts.stderr})
	stdout, stderr := c.process.Stdio()
	c.plugin = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins: plugin.PluginSet{wire.PluginName: &wire.Plugin{
			Side: c.side, Options: wire.ClientOptions{Program: l.program.Name, Unavailable: s.unavailable},
		}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc:       c.runner,
		StartTimeout:     l.program.startTimeout() + killDelay, // ours comes first, and says why
		AutoMTLS:         true,
		SkipHostEnv:      true,
		SyncStdout:       stdout,
		SyncStderr:       stderr,
		Logger:           logs.ForGoPlugin(log),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithIdleTimeout(0), // the socket's file is gone by then, so there is no second connection
			grpc.WithStreamInterceptor(c.conns.Keep),
		},
	})
	return c, nil
}

// socketDir is where the socket's directory goes: the usual one, unless its name is too long.
func socketDir() string {
	dir := os.TempDir()
	if len(dir)+len("/ndbridge-1234567890") > maxSocketPath {
		return "/tmp"
	}
	return dir
}

// runner gives go-plugin our process. Of the command it takes what go-plugin adds to the environment.
func (c *connection) runner(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
	c.process.Configure(cmd.Env, filepath.Clean(dir))
	return c.process, nil
}

// status takes what the program says about its start.
func (c *connection) status(s wire.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.statuses) < 16 { // a program has three stages; more is no news
		c.statuses = append(c.statuses, s)
	}
}

// stage finds the first status of a stage.
func (c *connection) stage(stage string) (wire.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.statuses {
		if s.Stage == stage {
			return s, true
		}
	}
	return wire.Status{}, false
}

// open starts the program and opens the session with its plugin. If ctx ends first, the program is
// killed, because go-plugin's start knows no context.
func (c *connection) open(ctx context.Context, settings func() wire.Settings) error {
	opened := make(chan error, 1)
	go func() { opened <- c.handshake(ctx, settings) }()
	select {
	case err := <-opened:
		return err
	case <-ctx.Done():
		_ = c.process.Kill(ctx) // never fails
		<-opened
		return context.Cause(ctx)
	}
}

func (c *connection) handshake(ctx context.Context, settings func() wire.Settings) error {
	protocol, err := c.plugin.Client()
	if err != nil {
		return err
	}
	dispensed, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return err
	}
	client, ok := dispensed.(*wire.Client)
	if !ok {
		return fmt.Errorf("go-plugin dispensed a %T", dispensed)
	}
	c.client = client
	if _, err := client.Open(ctx, settings()); err != nil {
		return err
	}
	c.handoff, err = client.OpenHandoff(ctx, c.launch.program.handoff().Spin, c.stray)
	// A program that has ended already says why to who asks it for a lease.
	if err != nil && !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	// The connection stands, and there will be no other: so nothing lies about while the program runs.
	return os.RemoveAll(c.sockets)
}

// abort ends what did not start.
func (c *connection) abort() {
	_ = c.process.Kill(context.Background()) // never fails
	c.process.Discard()
	<-c.process.Exited()
	// What the program said before its end may still be under way. A child of it may hold the socket.
	timeout := time.NewTimer(lastWordsWait)
	defer timeout.Stop()
	select {
	case <-c.side.Done():
	case <-timeout.C:
	}
	c.end()
}

// end ends the program, within killDelay, and everything around it. The side socket's end tells the
// plugin to end the program, and so does go-plugin.
func (c *connection) end() {
	_ = c.side.Close() // its error would be that it is closed
	guard := time.AfterFunc(killDelay, func() {
		_ = c.process.Kill(context.Background()) // never fails
	})
	c.plugin.Kill()
	guard.Stop()
	c.process.Discard()
	<-c.process.Exited()
	if c.client != nil {
		_ = c.client.Close() // never fails
	}
	if c.handoff != nil {
		_ = c.handoff.Close() // fails only if the memory was not mapped
	}
	c.conns.Close()
	c.process.CloseLog()
	_ = os.RemoveAll(c.sockets) // gone, unless the start failed
}

// spec says how the process is made.
func (l *launch) spec() *process.Spec {
	s := &process.Spec{
		Name: l.program.Name, Path: l.path, Args: l.argv, Dir: l.program.Dir, Env: l.env,
		OutputFD: l.program.python(),
	}
	if l.heap != "" && !strings.Contains(environ.Lookup(l.env, "LD_PRELOAD"), l.heap) {
		s.Preload = l.heap
	}
	return s
}
