package logs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
)

// sink collects records as decoded JSON objects.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *sink) records(t *testing.T) []map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []map[string]any
	for line := range strings.Lines(s.buf.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		delete(r, slog.TimeKey)
		all = append(all, r)
	}
	return all
}

func (s *sink) only(t *testing.T) map[string]any {
	t.Helper()
	all := s.records(t)
	if len(all) != 1 {
		t.Fatalf("%d records: %v; want 1", len(all), all)
	}
	return all[0]
}

func newLogger(level slog.Level) (hclog.Logger, *sink) {
	s := new(sink)
	return logs.NewHCLogger(slog.New(slog.NewJSONHandler(s, &slog.HandlerOptions{Level: level}))), s
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level slog.Level
		want  hclog.Level
		names []string
	}{
		{logs.LevelTrace, hclog.Trace, []string{"DEBUG-4", "DEBUG", "INFO", "WARN", "ERROR"}},
		{slog.LevelDebug, hclog.Debug, []string{"DEBUG", "INFO", "WARN", "ERROR"}},
		{slog.LevelInfo, hclog.Info, []string{"INFO", "WARN", "ERROR"}},
		{slog.LevelWarn, hclog.Warn, []string{"WARN", "ERROR"}},
		{slog.LevelError, hclog.Error, []string{"ERROR"}},
		{slog.LevelError + 1, hclog.Off, nil},
	} {
		l, s := newLogger(c.level)
		l.SetLevel(hclog.Error) // must do nothing
		if got := l.GetLevel(); got != c.want {
			t.Errorf("%v: GetLevel = %v, want %v", c.level, got, c.want)
		}
		enabled := []bool{l.IsTrace(), l.IsDebug(), l.IsInfo(), l.IsWarn(), l.IsError()}
		l.Trace("m")
		l.Debug("m")
		l.Info("m")
		l.Warn("m")
		l.Error("m")
		l.Log(hclog.Off, "never")
		var names []string
		for _, r := range s.records(t) {
			name, _ := r[slog.LevelKey].(string)
			names = append(names, name)
		}
		if strings.Join(names, " ") != strings.Join(c.names, " ") {
			t.Errorf("%v: wrote %v, want %v", c.level, names, c.names)
		}
		for i, on := range enabled {
			if want := i >= len(enabled)-len(c.names); on != want {
				t.Errorf("%v: level %d enabled = %v, want %v", c.level, i, on, want)
			}
		}
		s.buf.Reset()
		l.Log(hclog.Error, "m")
		if got := len(s.records(t)); got != min(len(c.names), 1) {
			t.Errorf("%v: Log(Error) wrote %d records", c.level, got)
		}
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log  func(hclog.Logger)
		want map[string]any
	}{
		"pairs":     {func(l hclog.Logger) { l.Info("m", "a", 1, "b", "two") }, map[string]any{"a": 1.0, "b": "two"}},
		"odd":       {func(l hclog.Logger) { l.Info("m", "a", 1, "lost") }, map[string]any{"a": 1.0, hclog.MissingKey: "lost"}},
		"key types": {func(l hclog.Logger) { l.Info("m", 7, "x") }, map[string]any{"7": "x"}},
		"error":     {func(l hclog.Logger) { l.Info("m", "err", errors.New("broken")) }, map[string]any{"err": "broken"}},
		"formats": {
			func(l hclog.Logger) {
				l.Info("m", "f", hclog.Fmt("%d of %s", 3, "x"), "none", hclog.Format{}, "hex", hclog.Hex(255),
					"oct", hclog.Octal(8), "bin", hclog.Binary(5), "quote", hclog.Quote("a\n"))
			},
			map[string]any{"f": "3 of x", "none": "", "hex": "0xff", "oct": "010", "bin": "0b101", "quote": `"a\n"`},
		},
		"names": {func(l hclog.Logger) { l.Named("a").Named("b").Info("m") }, map[string]any{"logger": "a.b"}},
		"reset": {func(l hclog.Logger) { l.Named("a").ResetNamed("c").Info("m") }, map[string]any{"logger": "c"}},
		"with": {
			func(l hclog.Logger) { l.With("k", 1).Named("n").With("j", 2).Info("m", "i", 3) },
			map[string]any{"logger": "n", "k": 1.0, "j": 2.0, "i": 3.0},
		},
		"with odd": {func(l hclog.Logger) { l.With("x").Info("m") }, map[string]any{hclog.MissingKey: "x"}},
	} {
		l, s := newLogger(slog.LevelInfo)
		c.log(l)
		want := map[string]any{slog.MessageKey: "m", slog.LevelKey: "INFO"}
		maps.Copy(want, c.want)
		if got := s.only(t); !maps.Equal(got, want) {
			t.Errorf("%s: wrote %v, want %v", name, got, want)
		}
	}
}

func TestSubLoggersShareNothing(t *testing.T) {
	t.Parallel()
	l, s := newLogger(slog.LevelInfo)
	parent := l.With("k", 1)
	first, second := parent.With("a", 1), parent.With("b", 2)
	args := first.ImpliedArgs()
	args[1] = "changed by the caller"
	second.Info("m")
	if got := s.only(t); got["b"] != 2.0 || got["k"] != 1.0 || got["a"] != nil {
		t.Errorf("second wrote %v", got)
	}
	if got := first.ImpliedArgs(); len(got) != 4 || got[1] != 1 || first.Name() != "" || l.Named("x").Name() != "x" {
		t.Errorf("ImpliedArgs = %v", got)
	}
}

func TestStandardLogger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts       *hclog.StandardLoggerOptions
		line       string
		level, msg string
	}{
		"no options":    {nil, "[WARN] plain\n", "INFO", "[WARN] plain"},
		"infer":         {&hclog.StandardLoggerOptions{InferLevels: true}, "[ERR] bad  \n", "ERROR", "bad"},
		"infer trace":   {&hclog.StandardLoggerOptions{InferLevels: true}, "[TRACE] t", "DEBUG-4", "t"},
		"infer debug":   {&hclog.StandardLoggerOptions{InferLevels: true}, "[DEBUG] d", "DEBUG", "d"},
		"infer info":    {&hclog.StandardLoggerOptions{InferLevels: true}, "[INFO] i", "INFO", "i"},
		"infer unknown": {&hclog.StandardLoggerOptions{InferLevels: true}, "[NOTE] n", "INFO", "[NOTE] n"},
		"infer no tag":  {&hclog.StandardLoggerOptions{InferLevels: true}, "none", "INFO", "none"},
		"timestamp": {
			&hclog.StandardLoggerOptions{InferLevels: true, InferLevelsWithTimestamp: true},
			"2026/01/02 03:04:05 [WARN] w", "WARN", "w",
		},
		"force": {&hclog.StandardLoggerOptions{ForceLevel: hclog.Error}, "[DEBUG] forced", "ERROR", "forced"},
	} {
		l, s := newLogger(logs.LevelTrace)
		l.StandardLogger(c.opts).Print(c.line)
		if got := s.only(t); got[slog.MessageKey] != c.msg || got[slog.LevelKey] != c.level {
			t.Errorf("%s: wrote %v, want %s %q", name, got, c.level, c.msg)
		}
	}
}

func TestSourceIsTheCaller(t *testing.T) {
	t.Parallel()
	s := new(sink)
	l := logs.NewHCLogger(slog.New(slog.NewJSONHandler(s, &slog.HandlerOptions{AddSource: true})))
	l.Warn("m")
	l.Log(hclog.Warn, "m")
	for _, r := range s.records(t) {
		source, _ := r[slog.SourceKey].(map[string]any)
		if file, _ := source["file"].(string); filepath.Base(file) != "hclogslog_test.go" {
			t.Errorf("source %v", source)
		}
	}
}
