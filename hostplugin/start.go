package hostplugin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/connection"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// start runs a prepared program and opens the session. After an error nothing is left of it.
func (h *Host) start(ctx context.Context, l *launch) (*Session, error) {
	h.sweepOnce.Do(connection.Sweep)
	return h.open(ctx, "start", l, connection.New)
}

// open opens a session with a program over a connection that connect makes.
func (h *Host) open(
	ctx context.Context, op string, l *launch, connect func(connection.Options) (*connection.Connection, error),
) (*Session, error) {
	s := newSession(h, l)
	found := leases.FindGPUs(h.log)
	c, err := connect(connection.Options{
		Program: l.program.Name, Python: l.program.python(), Plugin: l.plugin, Process: l.spec(),
		StartTimeout: l.program.startTimeout(), StopTimeout: l.program.stopTimeout(),
		Wish:   wire.Wish{Handoff: l.program.handoff(), Calls: l.program.calls()},
		Log:    h.log.With(slog.String("program", l.program.Name)),
		Stdout: l.program.Stdout, Stderr: l.program.Stderr,
		Stray: s.stray, Forked: s.forked, Unavailable: s.unavailable,
	})
	if err != nil {
		return nil, &core.Error{Op: op, Program: l.program.Name, Kind: core.ErrUnavailable, Err: err}
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer context.AfterFunc(h.ctx, func() { abort(core.ErrClosed) })() //nolint:contextcheck // joins the two
	if err := c.Open(ctx, func() contract.Settings {
		s.gpus = <-found
		return h.settings(l, s.gpus)
	}); err != nil {
		return nil, err
	}
	s.begin(c) //nolint:contextcheck // a session outlives the call
	if err := s.openCalls(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// settings gives the plugin's part of the configuration.
func (h *Host) settings(l *launch, hasGPUs []contract.UUID) contract.Settings {
	out := contract.Settings{Program: l.program.Name, GPUs: hasGPUs}
	out.CopyMappedFiles, out.Promote = l.program.CopyMappedFiles, contract.PromotePolicy(l.program.SharedHeap.Promote)
	held, known := shippedAdapters(l.program.plugin())
	for _, a := range h.cfg.Adapters {
		if known && !slices.Contains(held, a.Name) {
			continue // it is for a program with another plugin
		}
		settings := contract.AdapterSettings{Name: a.Name, Copy: a.Copy, Sync: a.Sync}
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

// spec says how the process is made.
func (l *launch) spec() process.Spec {
	s := process.Spec{
		Path: l.path, Args: l.argv, Dir: l.program.Dir, Env: l.env,
		OutputFD: l.program.python(),
	}
	if l.heap != "" && !strings.Contains(process.Getenv(l.env, "LD_PRELOAD"), l.heap) {
		s.Preload = l.heap
	}
	return s
}
