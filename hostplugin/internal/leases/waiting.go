package leases

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// interval is how long a call waits before somebody looks what it waits for, and then between looks.
const interval = 2 * time.Second

// hinting is a Program whose Lease tells who waits for a name, perhaps for ever, what the program has instead. If a
// call takes long because the name does not exist yet, the log says so once, with the name that was probably meant;
// the error of a call that is given up then has that as its remedy.
type hinting struct {
	Program
	log     *slog.Logger
	release func(contract.LeaseID) // which waits for nobody
}

// Lease implements Program. The call itself is left alone, since it may take long for other reasons:
// beside it, the program is asked for the name without waiting.
func (h *hinting) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	if req.NoWait {
		return h.Program.Lease(ctx, name, req)
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	looked := make(chan string, 1)
	timer := time.AfterFunc(interval, func() { looked <- h.look(looking, name) })
	lease, err := h.Program.Lease(ctx, name, req)
	stop()
	if timer.Stop() {
		return lease, err
	}
	remedy := <-looked
	if e, ok := errors.AsType[*core.Error](err); ok && ctx.Err() != nil && e.Remedy == "" {
		about := *e
		about.Remedy = remedy
		return lease, &about
	}
	return lease, err
}

// look asks for the name until ctx ends, and gives the last remedy.
func (h *hinting) look(ctx context.Context, name string) (remedy string) {
	again := time.NewTicker(interval)
	defer again.Stop()
	for said := false; ; said = true {
		lease, err := h.Program.Lease(ctx, name, contract.Request{NoWait: true, NoCode: true, Copy: contract.CopyNever})
		missing, ok := errors.AsType[*core.Error](err)
		switch {
		case err == nil: // it is there by now
			h.release(lease.ID)
			return remedy
		case !ok || !errors.Is(err, core.ErrNotFound):
			return remedy
		case missing.Remedy != "" && remedy == "":
			say(ctx, h.log, slog.LevelWarn, name, missing)
		case !said:
			say(ctx, h.log, slog.LevelInfo, name, missing)
		}
		remedy = missing.Remedy
		select {
		case <-again.C:
		case <-ctx.Done():
			return remedy
		}
	}
}

func say(ctx context.Context, log *slog.Logger, level slog.Level, name string, missing *core.Error) {
	attrs := []slog.Attr{slog.String("array", name)}
	if missing.Err != nil {
		attrs = append(attrs, slog.String("cause", missing.Err.Error()))
	}
	if missing.Remedy != "" {
		attrs = append(attrs, slog.String("remedy", missing.Remedy))
	}
	log.LogAttrs(ctx, level, "still waiting for an array", attrs...)
}
