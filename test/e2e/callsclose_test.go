package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// running is a program with functions that do not end, and one that waits until so many have begun.
const running = `
import asyncio, threading, time
import numpy as np
running = threading.Semaphore(0)
kept = []
def begun(n):
    for _ in range(n): running.acquire()
def sleeps(x):
    running.release()
    time.sleep(3600)
def spins(x):
    running.release()
    while True: x[0] += 1
def keeps(x):
    kept.append(x)
    running.release()
    threading.Event().wait()
async def awaits(x):
    running.release()
    await asyncio.sleep(3600)
`

// beginCalls has all functions of such a program run, each with an array of the host's.
func beginCalls(ctx context.Context, session *hostplugin.Session) (under []*hostplugin.Future, err error) {
	names := []string{"sleeps", "spins", "keeps", "awaits"}
	for _, name := range names {
		f, err := session.Func(ctx, name)
		if err != nil {
			return nil, err
		}
		v, err := session.New(core.Float64, 1<<12)
		if err != nil {
			return nil, err
		}
		under = append(under, f.Go(ctx, v))
	}
	f, err := session.Func(ctx, "begun")
	if err != nil {
		return nil, err
	}
	r, err := f.Call(ctx, len(names))
	if err != nil {
		return nil, err
	}
	return under, r.Close()
}

// TestCallsEndWithTheSession closes a session while functions run: their calls end, and neither the program nor any memory
// stays. The test is not parallel, for it counts descriptors.
func TestCallsEndWithTheSession(t *testing.T) {
	cfg, _ := harness.Config(t, running, harness.Options{})
	before := harness.Held(t)
	cfg.Logger = harness.Discard()
	host, err := hostplugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	session, err := host.Start(t.Context(), "program")
	if err != nil {
		t.Fatal(err)
	}
	info, err := session.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	under, err := beginCalls(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := session.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // it has to be killed
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(start); took > harness.StartBound {
		t.Errorf("Close took %v", took)
	}
	for _, f := range under {
		_, err := f.Wait(t.Context())
		wantCategory(t, err, core.ErrClosed)
	}
	if harness.Alive(info.PID) {
		t.Error("the program lives")
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	before.Same(t)
}

// TestProgramEndsWithItsHostWhileCallsRun kills a host with SIGKILL while functions run: two seconds later no process is
// left, and no file.
func TestProgramEndsWithItsHostWhileCallsRun(t *testing.T) {
	t.Setenv(hostCallsEnv, "1")
	killHost(t, running+"\nframe = np.zeros(1 << 16)\n", 0, 0)
}
