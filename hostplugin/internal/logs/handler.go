package logs

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// HCLogHandler makes a slog.Handler that writes to l, for hosts that log with hclog.
func HCLogHandler(l hclog.Logger) slog.Handler { return hclogHandler{log: l} }

type hclogHandler struct {
	log    hclog.Logger
	groups string // "a.b."
}

func hclogLevel(level slog.Level) hclog.Level {
	switch {
	case level < slog.LevelDebug:
		return hclog.Trace
	case level < slog.LevelInfo:
		return hclog.Debug
	case level < slog.LevelWarn:
		return hclog.Info
	case level < slog.LevelError:
		return hclog.Warn
	default:
		return hclog.Error
	}
}

func (h hclogHandler) Enabled(_ context.Context, level slog.Level) bool {
	switch hclogLevel(level) {
	case hclog.Trace:
		return h.log.IsTrace()
	case hclog.Debug:
		return h.log.IsDebug()
	case hclog.Info:
		return h.log.IsInfo()
	case hclog.Warn:
		return h.log.IsWarn()
	default:
		return h.log.IsError()
	}
}

func (h hclogHandler) Handle(_ context.Context, r slog.Record) error {
	args := make([]any, 0, 2*r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		args = h.append(args, h.groups, a)
		return true
	})
	h.log.Log(hclogLevel(r.Level), r.Message, args...)
	return nil
}

// append flattens an attribute into hclog's alternating keys and values.
func (h hclogHandler) append(args []any, groups string, a slog.Attr) []any {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Key == "" {
			return args
		}
		return append(args, groups+a.Key, v.Any())
	}
	if a.Key != "" {
		groups += a.Key + "."
	}
	for _, inner := range v.Group() {
		args = h.append(args, groups, inner)
	}
	return args
}

func (h hclogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var args []any
	for _, a := range attrs {
		args = h.append(args, h.groups, a)
	}
	return hclogHandler{log: h.log.With(args...), groups: h.groups}
}

func (h hclogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return hclogHandler{log: h.log, groups: h.groups + name + "."}
}

// demoted writes everything at debug level at most. What go-plugin calls an error, such as the exit
// of a process, is either this package's to report or nobody's.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, min(level, slog.LevelDebug))
}

func (d demoted) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	return d.Handler.Handle(ctx, r)
}

func (d demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoted{d.Handler.WithAttrs(attrs)}
}

func (d demoted) WithGroup(name string) slog.Handler { return demoted{d.Handler.WithGroup(name)} }

// ForGoPlugin gives go-plugin its logger.
func ForGoPlugin(log *slog.Logger) hclog.Logger {
	return NewHCLogger(slog.New(demoted{log.Handler()}))
}
