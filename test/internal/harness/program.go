package harness

import (
	"bytes"
	_ "embed" // remote.py
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

//go:embed remote.py
var remoteScript string

// StartBound is how long a test waits for a program to come up, imports of its own aside.
const StartBound = 30 * time.Second

// Run is a program under test.
type Run struct {
	*hostplugin.Session
	Remote *Remote // steers it, if the script uses remote.py; else it never connects
	Host   *hostplugin.Host
	Log    *Log
	Script string
}

// Options say how to run a program; the zero value runs the script in the base environment.
type Options struct {
	Python  string                     // interpreter; "" means that of the base environment
	Args    []string                   // of the script
	Env     map[string]string          // on top of the test's own
	Configs []func(*hostplugin.Config) // changes to the configuration

	Attached bool // the program runs before the host comes, which attaches to it
}

// Config writes script into a folder of the test's and gives a configuration whose one program,
// "program", runs it.
func Config(tb testing.TB, script string, opts Options) (hostplugin.Config, *Remote) {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "program.py")
	for name, text := range map[string]string{"program.py": script, "remote.py": remoteScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	python := opts.Python
	if python == "" {
		python = Python(tb)
	}
	remote := NewRemote(tb)
	env := map[string]string{"REMOTE_SOCKET": remote.socket}
	maps.Copy(env, opts.Env)
	cfg := hostplugin.Config{Programs: []hostplugin.Program{{
		Name: "program", Python: python, Script: file, Args: opts.Args, Env: env,
		Plugin: Library(tb, "ndbridge-all.so"), StartTimeout: StartBound, StopTimeout: time.Second,
	}}}
	for _, change := range opts.Configs {
		change(&cfg)
	}
	return cfg, remote
}

// Start runs a Python program until the test ends.
func Start(tb testing.TB, script string, opts Options) *Run {
	tb.Helper()
	cfg, remote := Config(tb, script, opts)
	log := NewLog()
	cfg.Logger = log.Logger()
	host, err := hostplugin.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // some have to be killed
			tb.Errorf("host.Close: %v", err)
		}
		if tb.Failed() {
			tb.Logf("the program's log:\n%s", log.Text())
		}
	})
	start := func() (*hostplugin.Session, error) { return host.Start(tb.Context(), "program") }
	if opts.Attached || os.Getenv(AttachedEnv) != "" {
		start = func() (*hostplugin.Session, error) { return attach(tb, host, &cfg.Programs[0], remote, log) }
	}
	session, err := start()
	if err != nil {
		tb.Fatal(err)
	}
	return &Run{Session: session, Remote: remote, Host: host, Log: log, Script: cfg.Programs[0].Script}
}

// View takes a view that is closed when the test ends.
func (r *Run) View(tb testing.TB, name string, opts ...hostplugin.ViewOption) *core.View {
	tb.Helper()
	view, err := r.Session.View(tb.Context(), name, opts...)
	if err != nil {
		tb.Fatalf("view %s: %v", name, err)
	}
	tb.Cleanup(func() { view.Close() })
	return view
}

// PID gives the program's process id.
func (r *Run) PID(tb testing.TB) int {
	tb.Helper()
	info, err := r.Info(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return info.PID
}

// Leases gives the number of leases that stand on the program's side.
func (r *Run) Leases(tb testing.TB) int {
	tb.Helper()
	info, err := r.Info(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return info.Leases
}

// NoLeases holds that no lease stands any more: a host gives them back a moment after a view's Close.
func (r *Run) NoLeases(tb testing.TB) {
	tb.Helper()
	Eventually(tb, 30*time.Second, "no lease stands", func() bool { return r.Leases(tb) == 0 })
}

// Log keeps what a host logs.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// NewLog gives an empty log.
func NewLog() *Log { return &Log{} }

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Text gives what was logged so far.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Contains reports whether a text was logged.
func (l *Log) Contains(text string) bool { return strings.Contains(l.Text(), text) }

// Logger gives a logger that writes into the log.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Discard gives a logger that keeps nothing.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
