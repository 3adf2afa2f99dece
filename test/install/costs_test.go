package install

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/native"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// slack is how much longer than the goal something may take on a machine that does other things, too.
const slack = 10

func median(values []time.Duration) time.Duration {
	slices.Sort(values)
	return values[len(values)/2]
}

// TestUnpackingCosts measures how long the embedded files take to be unpacked, and to be found again.
func TestUnpackingCosts(t *testing.T) {
	var first, again []time.Duration
	for range 5 {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		for _, times := range []*[]time.Duration{&first, &again} {
			began := time.Now()
			if _, err := native.Dir(); err != nil {
				t.Fatal(err)
			}
			*times = append(*times, time.Since(began))
		}
	}
	once, after := median(first), median(again)
	if once > slack*150*time.Millisecond || after > slack*5*time.Millisecond {
		t.Errorf("unpacking takes %v once, and %v after", once, after)
	}
	figure("unpacking, once", fmt.Sprintf("%.0f ms", once.Seconds()*1e3))
	figure("checking what was unpacked, at each start", fmt.Sprintf("%.2f ms", after.Seconds()*1e3))
}

// TestSessionCosts measures what a session adds to its interpreter.
func TestSessionCosts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("NDBRIDGE_LIB", "")
	python, empty := harness.Python(t), filepath.Join(t.TempDir(), "empty.py")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var bare, started []time.Duration
	for range 9 {
		began := time.Now()
		if err := exec.CommandContext(t.Context(), python, empty).Run(); err != nil {
			t.Fatal(err)
		}
		bare = append(bare, time.Since(began))
		began = time.Now()
		s, err := hostplugin.Run(t.Context(), hostplugin.Program{Python: python, Script: empty, Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		started = append(started, time.Since(began))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	added := median(started) - median(bare)
	if added > slack*100*time.Millisecond {
		t.Errorf("a start takes %v longer", added)
	}
	figure("start of a session over the bare interpreter's, p50", fmt.Sprintf("%.0f ms", added.Seconds()*1e3))
}

// TestSessionTakes measures what a session takes of its program's process and of its host's.
func TestSessionTakes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("NDBRIDGE_LIB", "")
	const script = "testdata/costs.py"
	python := harness.Python(t)
	out, err := exec.CommandContext(t.Context(), python, script).Output()
	var alone [4]int64
	if _, scan := fmt.Sscan(string(out), &alone[0], &alone[1], &alone[2], &alone[3]); err != nil || scan != nil {
		t.Fatal(err, scan)
	}
	var sessions [2]*hostplugin.Session // the first one takes what the process takes only once
	var taken [2][2]int64
	for i := range sessions {
		descriptors, bytes := harness.Descriptors(t, os.Getpid()), inUse()
		s, err := hostplugin.Run(t.Context(), hostplugin.Program{Python: python, Script: script, Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		v, err := s.View(t.Context(), "costs")
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if sessions[i] = s; i == 0 {
			reportProgram(t, v, alone)
		}
		taken[i] = [2]int64{int64(harness.Descriptors(t, os.Getpid()) - descriptors), inUse() - bytes}
	}
	figure("Go memory of the host, for each session", fmt.Sprintf("%.1f MiB", float64(taken[1][1])/(1<<20)))
	figure("descriptors of the host, for each session", strconv.FormatInt(taken[1][0], 10))
	if taken[1][0] > 32 || taken[1][1] > 8<<20 {
		t.Errorf("sessions take of the host, in descriptors and bytes: %v", taken)
	}
}

// reportProgram compares what a program takes with what it takes alone: what costs.py counts.
func reportProgram(t *testing.T, v *core.View, alone [4]int64) {
	t.Helper()
	costs, err := core.Slice[int64](v)
	if err != nil {
		t.Fatal(err)
	}
	var added [4]int64
	for i := range added {
		added[i] = costs[i] - alone[i]
	}
	memory, own, threads, descriptors := float64(added[0])/1024, float64(added[1])/1024, added[2], added[3]
	t.Logf("a session takes %.1f MiB, %.1f of them its own, %d threads, %d descriptors", memory, own, threads, descriptors)
	if memory > 18 || own > 8 || threads > 24 || descriptors > 32 {
		t.Errorf("a session takes %.1f MiB, %.1f of them its own, %d threads, %d descriptors", memory, own, threads, descriptors)
	}
	figure("memory of the program over the bare one's, with NumPy: resident, private and shared", fmt.Sprintf("%.1f MiB", memory))
	figure("of this: its own; the rest is the plugin's file, which all programs share", fmt.Sprintf("%.1f MiB", own))
	figure("threads of the program over the bare one's", strconv.FormatInt(threads, 10))
	figure("descriptors of the program over the bare one's", strconv.FormatInt(descriptors, 10))
}

// inUse gives how many bytes of Go's heap and stacks are in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // it fits
}
