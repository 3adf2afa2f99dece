package e2e

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// bound is how long any lie may keep a host busy beyond the deadline that its caller set.
const bound = 8 * time.Second

// TestLyingPlugins runs one plugin for each lie. The tests of this package that count descriptors and
// mappings are not parallel, so that they count their own.
func TestLyingPlugins(t *testing.T) {
	var names []string
	for name := range lies() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			before := harness.Held(t)
			pid := meet(t, name)
			harness.Eventually(t, bound, "the plugin has ended", func() bool { return !harness.Alive(pid) })
			before.Same(t)
		})
	}
}

// meet starts the plugin that tells a lie, asks it for what it lies about, and ends it.
func meet(t *testing.T, name string) (pid int) {
	t.Helper()
	host, err := hostplugin.New(hostplugin.Config{Logger: harness.NewLog().Logger(), Programs: []hostplugin.Program{{
		Name: "liar", Plugin: os.Args[0], Env: map[string]string{lieEnv: name}, StartTimeout: bound,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		start := time.Now()
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // some have to be killed
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took > bound {
			t.Errorf("Close took %v", took)
		}
	}()
	session, err := host.Start(t.Context(), "liar")
	if strings.HasPrefix(name, "info: ") {
		wantCategory(t, err, core.ErrProtocol)
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := session.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deadline := harness.StartBound // on a busy machine it takes seconds to be told as much as some lies tell
	if name == "lease: never answered" {
		deadline = bound / 2
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now()
	if strings.HasPrefix(name, "arrays: ") {
		err = drain(ctx, session)
	} else {
		err = read(ctx, session)
	}
	if took := time.Since(start); took > deadline+bound {
		t.Errorf("the lie kept the host busy for %v", took)
	}
	switch name {
	case "honest", "deaf", "side: garbage", "side: an error that is none":
		if err != nil {
			t.Errorf("an honest lease: %v", err)
		}
	case "lease: never answered":
		wantCategory(t, err, context.DeadlineExceeded)
	case "lease: exits", "lease: crashes", "descriptor: crashes":
		wantCategory(t, err, core.ErrUnavailable)
		wantCategory(t, session.Err(), core.ErrUnavailable)
	case "descriptor: empty", "descriptor: too small", "lease: larger than its file", "lease: larger than any memory":
		wantCategory(t, err, core.ErrPointer)
	default:
		wantCategory(t, err, core.ErrProtocol)
	}
	return info.PID
}

// read takes a view and sums every byte of it.
func read(ctx context.Context, session *hostplugin.Session) error {
	view, err := session.View(ctx, "a")
	if err != nil {
		return err
	}
	data, err := view.Bytes()
	for _, b := range data {
		if b != 0 {
			err = errors.New("the plugin's memory is not what it was")
		}
	}
	return errors.Join(err, view.Close())
}

func drain(ctx context.Context, session *hostplugin.Session) error {
	for _, err := range session.Arrays(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// wantCategory holds that an error matches a category, and that its text can be read.
func wantCategory(t *testing.T, err, category error) {
	t.Helper()
	if !errors.Is(err, category) {
		t.Errorf("error %v; want one of category %q", err, category)
		return
	}
	if text := err.Error(); len(text) > 32<<10 {
		t.Errorf("the error's text has %d bytes: %.200q...", len(text), text)
	}
}
