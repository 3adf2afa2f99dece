package logs

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// LevelTrace is the slog level of hclog's Trace: as far below Debug as Debug is below Info.
const LevelTrace = slog.LevelDebug - 4

// nameKey is the attribute that holds a logger's name.
const nameKey = "logger"

// logger is an hclog.Logger. It is immutable; the handler decides what is written.
type logger struct {
	handler slog.Handler // without the name and the implied arguments
	name    string
	implied []any // alternating keys and values, never written in place
}

// NewHCLogger returns an hclog.Logger that writes to l, so that what go-plugin logs ends in the log of the host. Names become an attribute "logger", key and value
// pairs attributes, Trace [LevelTrace]. Which levels are written is the handler's business: SetLevel
// does nothing. The logger is safe for concurrent use.
func NewHCLogger(l *slog.Logger) hclog.Logger { return &logger{handler: l.Handler()} }

// levelOf gives the slog level of an hclog level.
func levelOf(level hclog.Level) slog.Level {
	switch level {
	case hclog.Trace:
		return LevelTrace
	case hclog.Debug:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	case hclog.NoLevel, hclog.Info, hclog.Off:
		return slog.LevelInfo
	default:
		return slog.LevelInfo
	}
}

// log writes one record; the source it names is the caller of the method that called log.
func (l *logger) log(level hclog.Level, msg string, args []any) {
	ctx := context.Background() // hclog has no contexts to pass on
	if level == hclog.Off || !l.handler.Enabled(ctx, levelOf(level)) {
		return
	}
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:])
	r := slog.NewRecord(time.Now(), levelOf(level), msg, pcs[0])
	if l.name != "" {
		r.AddAttrs(slog.String(nameKey, l.name))
	}
	r.AddAttrs(attributes(l.implied)...)
	r.AddAttrs(attributes(args)...)
	_ = l.handler.Handle(ctx, r) // a logger has nobody to tell that it cannot log
}

// attributes turns alternating keys and values into attributes, as hclog reads them: a last value
// without a key gets hclog's own name for it.
func attributes(args []any) []slog.Attr {
	if len(args)%2 != 0 {
		args = slices.Insert(slices.Clone(args), len(args)-1, any(hclog.MissingKey))
	}
	attrs := make([]slog.Attr, 0, len(args)/2)
	for pair := range slices.Chunk(args, 2) {
		key, ok := pair[0].(string)
		if !ok {
			key = fmt.Sprint(pair[0])
		}
		attrs = append(attrs, slog.Any(key, value(pair[1])))
	}
	return attrs
}

// value writes hclog's formatting types as hclog would.
func value(v any) any {
	switch v := v.(type) {
	case hclog.Format:
		if len(v) == 0 {
			return ""
		}
		return fmt.Sprintf(fmt.Sprint(v[0]), v[1:]...)
	case hclog.Hex:
		return "0x" + strconv.FormatUint(uint64(v), 16)
	case hclog.Octal:
		return "0" + strconv.FormatUint(uint64(v), 8)
	case hclog.Binary:
		return "0b" + strconv.FormatUint(uint64(v), 2)
	case hclog.Quote:
		return strconv.Quote(string(v))
	default:
		return v
	}
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) { l.log(level, msg, args) }
func (l *logger) Trace(msg string, args ...any)                  { l.log(hclog.Trace, msg, args) }
func (l *logger) Debug(msg string, args ...any)                  { l.log(hclog.Debug, msg, args) }
func (l *logger) Info(msg string, args ...any)                   { l.log(hclog.Info, msg, args) }
func (l *logger) Warn(msg string, args ...any)                   { l.log(hclog.Warn, msg, args) }
func (l *logger) Error(msg string, args ...any)                  { l.log(hclog.Error, msg, args) }

func (l *logger) enabled(level slog.Level) bool {
	return l.handler.Enabled(context.Background(), level)
}

func (l *logger) IsTrace() bool { return l.enabled(LevelTrace) }
func (l *logger) IsDebug() bool { return l.enabled(slog.LevelDebug) }
func (l *logger) IsInfo() bool  { return l.enabled(slog.LevelInfo) }
func (l *logger) IsWarn() bool  { return l.enabled(slog.LevelWarn) }
func (l *logger) IsError() bool { return l.enabled(slog.LevelError) }

func (l *logger) ImpliedArgs() []any { return slices.Clone(l.implied) }
func (l *logger) Name() string       { return l.name }

func (l *logger) With(args ...any) hclog.Logger {
	if len(args)%2 != 0 {
		args = slices.Insert(slices.Clone(args), len(args)-1, any(hclog.MissingKey))
	}
	return &logger{handler: l.handler, name: l.name, implied: slices.Concat(l.implied, args)}
}

func (l *logger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *logger) ResetNamed(name string) hclog.Logger {
	return &logger{handler: l.handler, name: name, implied: l.implied}
}

func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error} {
		if l.enabled(levelOf(level)) {
			return level
		}
	}
	return hclog.Off
}

func (l *logger) StandardLogger(opts *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(opts), "", 0)
}

func (l *logger) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	if opts == nil {
		opts = &hclog.StandardLoggerOptions{}
	}
	return &writer{logger: l, opts: *opts}
}

// writer logs each Write as one message: what a standard log.Logger needs of its output.
type writer struct {
	logger *logger
	opts   hclog.StandardLoggerOptions
}

// Write implements io.Writer. It never fails.
func (w *writer) Write(p []byte) (int, error) {
	msg := strings.TrimRight(string(p), " \t\r\n")
	level := hclog.Info
	switch {
	case w.opts.ForceLevel != hclog.NoLevel:
		_, msg = inferLevel(msg)
		level = w.opts.ForceLevel
	case w.opts.InferLevels && w.opts.InferLevelsWithTimestamp:
		level, msg = inferLevel(strings.TrimLeft(msg, "0123456789 \t:/.+-TZ"))
	case w.opts.InferLevels:
		level, msg = inferLevel(msg)
	}
	w.logger.log(level, msg, nil)
	return len(p), nil
}

// inferLevel takes a level such as "[WARN]" off the front of a line.
func inferLevel(line string) (hclog.Level, string) {
	if name, rest, ok := strings.Cut(line, "]"); ok {
		switch name {
		case "[TRACE":
			return hclog.Trace, strings.TrimSpace(rest)
		case "[DEBUG":
			return hclog.Debug, strings.TrimSpace(rest)
		case "[INFO":
			return hclog.Info, strings.TrimSpace(rest)
		case "[WARN":
			return hclog.Warn, strings.TrimSpace(rest)
		case "[ERROR", "[ERR":
			return hclog.Error, strings.TrimSpace(rest)
		}
	}
	return hclog.Info, line
}
