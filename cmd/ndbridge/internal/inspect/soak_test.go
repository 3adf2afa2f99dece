package inspect

import (
	"encoding/json"
	flags "flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/internal/watch"
)

var soak = flags.Duration("soak", 0, "how long the page of a thousand arrays would be open if all looks were as far apart as they usually are")

const (
	soakArrays = 1000
	brief      = 4 * time.Second // until what is held is compared, and then until it is again
)

// soakProgram has small arrays, large ones, and such as are new again and again.
const soakProgram = `
import time
import numpy as np
for i in range(%d):
    globals()[f"a{i}"] = np.full(16384 if i %% 4 else 512, i, np.float32)
while True:
    for i in range(0, %[1]d, 80):
        globals()[f"a{i}"] = np.full(512, i, np.float32)
        globals()[f"a{i+1}"][:] += 1
    time.sleep(0.1)
`

// holdings is what a process holds.
type holdings struct{ Memory, Goroutines, Descriptors, ProgramMemory, ProgramDescriptors int }

func holdingsOf(t *testing.T, pid int) holdings {
	t.Helper()
	for range 2 {
		runtime.GC() // what a finalizer has freed is gone after the second
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident := func(pid int) (n int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err == nil {
			_, err = fmt.Sscan(string(text), new(int), &n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n * os.Getpagesize()
	}
	descriptors := func(pid int) int {
		all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	return holdings{int(m.HeapAlloc), runtime.NumGoroutine(), descriptors(os.Getpid()), resident(pid), descriptors(pid)} //nolint:gosec // no heap is larger
}

// TestSoak has a page of a thousand arrays open for a long time, all of which are recorded, and goes from one to the next: neither process comes to
// hold more. Looks come as fast as they can, so that hours pass in minutes.
//
//nolint:paralleltest // goroutines and descriptors of this process are counted
func TestSoak(t *testing.T) {
	session := startProgram(t, fmt.Sprintf(soakProgram, soakArrays))
	if _, err := session.View(t.Context(), fmt.Sprintf("a%d", soakArrays-1)); err != nil { // until all are there
		t.Fatal(err)
	}
	info, err := session.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alarm, err := watch.ParseAlarm("nan")
	if err != nil {
		t.Fatal(err)
	}
	const haste = 16 // more would have the program list its arrays all the time, and hardly be looked at
	server, end := serve(t, Options{Session: session, Budget: 4, Alarms: []watch.Alarm{alarm}, haste: haste})
	conn := openPage(t, server)
	rounds := func() int {
		server.hub.mu.Lock()
		defer server.hub.mu.Unlock()
		return server.hub.recorder.state.Usage.Rounds
	}
	begun := time.Now()
	// Without the flag histories are not yet full, and grow as much as few rounds let them. Arrays that are added late have theirs later.
	warm := func() bool { return *soak == 0 && time.Since(begun) > brief || rounds() >= 2*watch.DefaultHistory }
	enough := func(since int) bool {
		if *soak == 0 {
			return time.Since(begun) > 2*brief || rounds() >= since+64
		}
		return rounds() >= int(*soak/recordEvery)
	}
	var (
		took   []time.Duration
		before holdings
		since  int
	)
	for look := 0; since == 0 || !enough(since); look++ {
		if since == 0 && warm() {
			before, since, took = holdingsOf(t, info.PID), rounds(), nil
		}
		took = append(took, showArray(t, conn, fmt.Sprintf("a%d", look*7%soakArrays)))
		if *soak > 0 && look%10_000 == 0 {
			t.Logf("%d of %d rounds after %v", rounds(), int(*soak/recordEvery), time.Since(begun).Round(time.Second))
		}
	}
	after := holdingsOf(t, info.PID)
	slices.Sort(took)
	t.Logf("%d rounds of %d arrays in %v, %d looks of the page: the median after %v, the longest after %v; from %+v to %+v", rounds(), soakArrays,
		time.Since(begun).Round(time.Second), len(took), took[len(took)/2], took[len(took)-1], before, after)
	const memory, pieces = 32 << 20, 8 // what varies; a leak of anything in each round, or in each look, is more
	if after.Memory > before.Memory+memory || after.ProgramMemory > before.ProgramMemory+memory ||
		max(after.Goroutines-before.Goroutines, after.Descriptors-before.Descriptors, after.ProgramDescriptors-before.ProgramDescriptors) > pieces {
		t.Errorf("from %+v to %+v", before, after)
	}
	end()
}

// showArray has the page show an array, and says how long it took until its figures were there.
func showArray(t *testing.T, conn *websocket.Conn, name string) time.Duration {
	t.Helper()
	begun := time.Now()
	look := fmt.Sprintf(`{"look": {"name": %q, "auto": true, "width": 64, "height": 64, "line": -1}}`, name)
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(look)); err != nil {
		t.Fatal(err)
	}
	for {
		kind, text, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Topic, Name string }
		if kind != websocket.MessageText {
			continue
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m.Topic == "array" && m.Name == name {
			return time.Since(begun)
		}
	}
}
