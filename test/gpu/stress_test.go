//go:build cuda

package gpu

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	stressViews  = 10_000
	stressArrays = 8
	// stressFresh is after how many views an array is forgotten and a new one made: so many imports are
	// first ones.
	stressFresh = 50
)

// TestStress takes and closes ten thousand views of arrays on a GPU, many of them new: memory of the
// device, descriptors and mappings of both processes come back to where they were.
func TestStress(t *testing.T) {
	for _, name := range []string{"driver", "pycuda", "torch", "cupy"} {
		if has(t, name) {
			t.Run(name, func(t *testing.T) { stress(t, name) })
		}
	}
}

func stress(t *testing.T, name string) {
	run := start(t, name, nil)
	pid := run.PID(t)
	made := 0
	fresh := func() {
		run.Remote.Exec(t, fmt.Sprintf("make('a%d', %q, %d)", made%stressArrays, firstKinds[name], made))
		made++
	}
	look := func(i int) {
		view, err := run.Session.View(t.Context(), fmt.Sprintf("a%d", i%stressArrays))
		if err != nil {
			t.Fatal(err)
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * stressArrays { // what is kept for later is there from then on
		fresh()
		look(i % stressArrays)
	}
	run.NoLeases(t)
	settle(t, run, pid, usage{})
	before := measure(t, run, pid)
	start := time.Now()
	for i := range stressViews {
		if i%stressFresh == 0 {
			fresh()
		}
		look(i)
	}
	took := time.Since(start)
	run.NoLeases(t)
	after := settle(t, run, pid, before)

	row := &report.Row{Table: fmt.Sprintf("%d views taken and closed, %d arrays made anew meanwhile", stressViews, stressViews/stressFresh)}
	row.Set("framework", name)
	row.Set("time a view", fmt.Sprintf("%.0f us", float64(took.Microseconds())/stressViews))
	row.Set("device memory free before", before.free)
	row.Set("after", after.free)
	row.Set("descriptors and mappings of the host before", fmt.Sprintf("%d, %d", before.hostFiles, before.hostMaps))
	row.Set("host after", fmt.Sprintf("%d, %d", after.hostFiles, after.hostMaps))
	row.Set("of the program before", fmt.Sprintf("%d, %d", before.files, before.maps))
	row.Set("program after", fmt.Sprintf("%d, %d", after.files, after.maps))
	write(t, row)
	if after.exceeds(before) {
		t.Errorf("after all views are closed, this is held: %+v; before: %+v", after, before)
	}
}

// usage is what both processes hold.
type usage struct {
	free                             int64 // bytes of the device
	hostFiles, hostMaps, files, maps int
}

func measure(t *testing.T, run *harness.Run, pid int) usage {
	t.Helper()
	return usage{
		free:      harness.Eval[int64](t, run.Remote, "free_memory()"),
		hostFiles: harness.Descriptors(t, os.Getpid()), hostMaps: shared(t, os.Getpid()),
		files: harness.Descriptors(t, pid), maps: shared(t, pid),
	}
}

// shared counts mappings that a process shares with others: private ones come and go with its threads.
func shared(t *testing.T, pid int) int {
	t.Helper()
	n := 0
	for _, m := range harness.Mappings(t, pid) {
		if m.Perms[3] == 's' {
			n++
		}
	}
	return n
}

// exceeds says whether more is held than before.
func (u usage) exceeds(before usage) bool {
	return u.free < before.free || u.hostFiles > before.hostFiles || u.hostMaps > before.hostMaps ||
		u.files > before.files || u.maps > before.maps
}

// settle waits, for a while, until no more is held than before: what was imported stays open for some
// seconds after its last use. Without a before it waits until nothing changes any more.
func settle(t *testing.T, run *harness.Run, pid int, before usage) usage {
	t.Helper()
	const patience, still = 20 * time.Second, 4 * time.Second
	now := measure(t, run, pid)
	changed := time.Now()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		next := measure(t, run, pid)
		if next != now {
			now, changed = next, time.Now()
		}
		if before == (usage{}) && time.Since(changed) > still || before != (usage{}) && !now.exceeds(before) {
			break
		}
	}
	return now
}
