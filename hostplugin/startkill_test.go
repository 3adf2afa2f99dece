package hostplugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// TestStartsLeaveNothing: whoever is killed during a start, no file of it stays, because there is none
// but for the moment in which the plugin begins to listen.
func TestStartsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	empty := func(when string) {
		t.Helper()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s there is %v, %v", when, entries, err)
		}
	}
	start(t)
	empty("beside a session")

	marker := filepath.Join(t.TempDir(), "runs")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		host := newHost(t, hostplugin.Program{
			Name: "slow", Script: os.DevNull,
			Plugin: write(t, "x.so", "no library"),
			Python: bootstraptest.WriteProgram(t, "python", "#!/bin/sh\necho > "+marker+"; exec sleep 600\n"),
		})
		if _, err := host.Start(ctx, "slow"); !errors.Is(err, context.Canceled) {
			t.Errorf("Start = %v", err)
		}
	})
	eventually(t, "the program runs", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
	empty("while a program starts")
	cancel()
	wg.Wait()
}

// TestKilledDuringStart: a program that was killed has not broken the protocol, at whatever moment.
func TestKilledDuringStart(t *testing.T) {
	t.Parallel()
	python := func(script string) hostplugin.Program {
		return hostplugin.Program{
			Name: "fake", Script: os.DevNull, Plugin: write(t, "x.so", "no library"),
			Python: bootstraptest.WriteProgram(t, "python", "#!/bin/sh\n"+script+"\n"),
		}
	}
	for name, test := range map[string]struct {
		program hostplugin.Program
		want    string
	}{
		"before it is Python":   {python("echo farewell >&2; kill -TERM $$"), `was killed by signal 15 (SIGTERM) before it was ready; its last words: "farewell"`},
		"before it serves":      {fake("die"), `was killed by signal 9 (SIGKILL) before it was ready; its last words: "farewell"`},
		"while it is asked to":  {fake("serve", "die"), `was killed by signal 9 (SIGKILL) before it was ready; its last words: "farewell"`},
		"and Python noticed it": {python("echo KeyboardInterrupt >&2; exit 1"), `exited with status 1 before it was ready; its last words: "KeyboardInterrupt"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := newHost(t, test.program)
			for range 20 { // who is the first to hear of it?
				_, err := host.Start(t.Context(), "fake")
				if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrProtocol) {
					t.Fatalf("Start = %v", err)
				}
				if want := "start fake: unavailable: the program " + test.want; err.Error() != want {
					t.Fatalf("Start = %v\nwant %v", err, want)
				}
			}
		})
	}
}
