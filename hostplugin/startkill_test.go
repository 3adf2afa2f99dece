package hostplugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/programfile"
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
			Python: programfile.Write(t, "python", "#!/bin/sh\necho > "+marker+"; exec sleep 600\n"),
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
