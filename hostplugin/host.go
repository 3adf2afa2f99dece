package hostplugin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Host starts programs and holds the sessions with them. All methods are safe for concurrent use.
type Host struct {
	cfg Config
	log *slog.Logger

	ctx    context.Context //nolint:containedctx // the host's own, which ends with Close
	cancel context.CancelCauseFunc

	adviseOnce sync.Once
	sweepOnce  sync.Once

	mu       sync.Mutex
	closed   bool
	starting sync.WaitGroup // grows only while closed is false
	sessions map[*Session]struct{}

	arrays owned
}

// New checks a configuration and makes a Host of it. It starts nothing. The host keeps a copy of cfg
// with absolute paths. The error is a [*ConfigError].
func New(cfg Config) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg.clone(), log: cmp.Or(cfg.Logger, slog.Default()), sessions: make(map[*Session]struct{})}
	h.arrays.gpu = imports.New(nil) // of no program
	for i := range h.cfg.Programs {
		if err := absolute(&h.cfg.Programs[i]); err != nil {
			return nil, &core.Error{Op: "configure", Program: h.cfg.Programs[i].Name, Kind: core.ErrConfig, Err: err}
		}
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h, nil
}

// Open is [Load] and [New]. Who wants to say what no file says, such as the logger, calls the two. The context is for what loading may have to wait for.
func Open(ctx context.Context, path string) (*Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.Error{Op: "load " + path, Kind: err, Err: context.Cause(ctx)}
	}
	cfg, err := Load(path)
	if err != nil {
		return nil, err
	}
	return New(cfg)
}

// absolute makes the paths of a Config that was written in Go independent of the working directory.
func absolute(p *Program) error {
	for _, path := range []*string{&p.Script, &p.Dir, &p.Python, &p.Plugin} {
		name := path == &p.Python || path == &p.Plugin
		if *path == "" || name && !strings.Contains(*path, "/") {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	return nil
}

// Start runs a program and opens a session with it. It returns when the plugin in it answers, which
// is before the script does its own imports; views wait for what they need. A program may be started
// several times; each session has a process of its own.
//
// The errors wrap core.ErrNotFound (there is no such program), core.ErrConfig (something it names is
// missing or unfit), core.ErrVersion (interpreter or plugin are too old or too new),
// core.ErrUnavailable (it did not come up), core.ErrProtocol (the plugin misbehaves), core.ErrClosed,
// or the error of ctx. Nothing is left running after an error.
func (h *Host) Start(ctx context.Context, program string) (*Session, error) {
	i := slices.IndexFunc(h.cfg.Programs, func(p Program) bool { return p.Name == program })
	if i < 0 {
		return nil, &core.Error{
			Op: "start", Program: program, Kind: core.ErrNotFound,
			Err:    errors.New("no such program is configured"),
			Remedy: prose.Remedy(program, h.cfg.names(), "see the program blocks of the configuration"),
		}
	}
	return h.begin("start", program, func() (*Session, error) {
		l, err := h.prepare(&h.cfg.Programs[i])
		if err != nil {
			return nil, err
		}
		s, err := h.start(ctx, l)
		if err == nil {
			h.advise(l)
		}
		return s, err
	})
}

// begin makes a session of the host's, unless the host is closed.
func (h *Host) begin(op, program string, open func() (*Session, error)) (*Session, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, &core.Error{Op: op, Program: program, Kind: core.ErrClosed}
	}
	h.starting.Add(1)
	h.mu.Unlock()
	defer h.starting.Done()

	s, err := open()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.sessions[s] = struct{}{} // Close waits for this before it looks at the sessions
	h.mu.Unlock()
	return s, nil
}

// advise logs what makes views slower than they could be.
func (h *Host) advise(l *launch) {
	log := h.log.With(slog.String("program", l.program.Name))
	if l.heap == "" {
		if l.program.python() && !l.program.SharedHeap.Off {
			log.Warn("the program runs without the shared heap: its arrays will be copied, but for large ones",
				slog.String("reason", l.heapOff))
		}
		return
	}
	h.adviseOnce.Do(func() {
		if remedy := shm.HugePages(); remedy != "" {
			log.Debug("shared memory has no huge pages: the first touch of many large arrays is slower than it could be",
				slog.String("remedy", remedy))
		}
	})
}

// Close closes all sessions, and so ends their programs and closes all views. It returns when nothing is left running.
// It is idempotent. The error joins those of [Session.Close].
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel(core.ErrClosed)
	h.starting.Wait()
	h.mu.Lock()
	sessions := h.sessions
	h.sessions = nil
	h.mu.Unlock()
	failed := make(chan error, len(sessions))
	for s := range sessions {
		go func() { failed <- s.Close() }()
	}
	var errs []error
	for range sessions {
		errs = append(errs, <-failed)
	}
	errs = append(errs, h.arrays.close(), h.arrays.gpu.Close())
	return errors.Join(errs...)
}

// forget drops a session that was closed.
func (h *Host) forget(s *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s)
}
