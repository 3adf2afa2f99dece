package hostplugin_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSessionsLeaveNothing: no descriptor and no mapping of the host's outlives the session.
func TestSessionsLeaveNothing(t *testing.T) { //nolint:paralleltest // it counts what the process has
	host := newHost(t, fake("serve"))
	once := func() {
		s, err := host.Start(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			closeView(t, view(t, s, "samples"))
		}
		if !mapsMailbox(t) {
			t.Error("the mailbox of a session is not mapped under the name that this test looks for")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	once() // what is opened once and for all
	before := len(openFDs(t))
	for range 5 {
		once()
	}
	eventually(t, "no descriptor is left", func() bool { return len(openFDs(t)) <= before })
	if mapsMailbox(t) {
		t.Error("a mailbox is still mapped")
	}
}

// mapsMailbox tells whether this process has mapped the memory of a mailbox.
func mapsMailbox(t *testing.T) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(maps, []byte("ndbridge-handoff"))
}

// TestIdle: a program whose views nobody asks for sleeps, once its spin is over.
func TestIdle(t *testing.T) {
	t.Parallel()
	const idle, allowed = 2 * time.Second, 0.005
	s := start(t)
	closeView(t, view(t, s, "samples"))
	pid := info(t, s).PID
	share := 1.0
	eventually(t, "the program sleeps", func() bool {
		before := cpuTime(t, pid)
		time.Sleep(idle)
		share = float64(cpuTime(t, pid)-before) / float64(idle)
		return share <= allowed
	})
	t.Logf("an idle program uses %.2f %% of a core", 100*share)
}

// cpuTime is what a process has used until now, in ticks of 10 ms.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var sum time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}
