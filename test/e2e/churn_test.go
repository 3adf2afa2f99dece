package e2e

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// counts are what must not grow on either side.
type counts struct {
	HostDescriptors, HostMappings, HostGoroutines       int
	ProgramDescriptors, ProgramMappings, ProgramThreads int
	Leases, References, Blocks, ProgramObjects          int
	HostResident, ProgramResident                       int64
}

const churnScript = `
import gc, os, sys
import numpy as np, remote
shared = np.arange(1 << 17, dtype="f8")
small = np.arange(100, dtype="i4")
mapped = np.memmap(os.path.join(os.path.dirname(__file__), "mapped"), "u1", "w+", shape=(1 << 16,))
record = np.zeros(1 << 12, [("x", "<f4"), ("y", "<f8"), ("tag", "S4")])
NAMES = ["shared", "small", "mapped", "record"]
remote.serve()
`

var churnNames = []string{"shared", "small", "mapped", "record"}

// TestFreedMemoryGoesBack holds that memory which the heap keeps, since the program has asked for it again and
// again, goes back to the system though the program does nothing more.
func TestFreedMemoryGoesBack(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import numpy as np, remote\nremote.serve()\n", harness.Options{})
	run.Remote.Exec(t, "live = np.ones(8 << 20)")
	pid := run.PID(t)
	before := harness.MemoryOf(t, pid).Resident
	run.Remote.Exec(t, "for _ in range(4): np.ones(8 << 20)")
	harness.Eventually(t, harness.StartBound, "the memory of dropped arrays goes back", func() bool {
		return harness.MemoryOf(t, pid).Resident < before+16<<20
	})
}

func count(t *testing.T, run *harness.Run) counts {
	t.Helper()
	runtime.GC()
	host, program := os.Getpid(), run.PID(t)
	run.Remote.Exec(t, "gc.collect()")
	memory, programMemory := harness.MemoryOf(t, host), harness.MemoryOf(t, program)
	return counts{
		HostDescriptors:    harness.Descriptors(t, host),
		HostMappings:       len(harness.Mappings(t, host)),
		HostGoroutines:     runtime.NumGoroutine(),
		ProgramDescriptors: harness.Descriptors(t, program),
		ProgramMappings:    len(harness.Mappings(t, program)),
		ProgramThreads:     harness.Threads(t, program),
		Leases:             run.Leases(t),
		References:         harness.Eval[int](t, run.Remote, "sum(sys.getrefcount(globals()[n]) for n in NAMES)"),
		Blocks:             harness.Eval[int](t, run.Remote, "sys.getallocatedblocks()"),
		ProgramObjects:     harness.Eval[int](t, run.Remote, "len(gc.get_objects())"),
		HostResident:       memory.Resident,
		ProgramResident:    programMemory.Resident,
	}
}

// TestManyViewsLeaveNothing takes and closes 50,000 views of arrays of every route, from
// several goroutines, and compares both processes before and after.
func TestManyViewsLeaveNothing(t *testing.T) {
	const workers, warmUp = 4, 5_000
	total := 50_000
	if testing.Short() {
		total = 5_000
	}
	run := harness.Start(t, churnScript, harness.Options{})
	churn(t, run, workers, warmUp)
	run.NoLeases(t)
	before := count(t, run)
	churn(t, run, workers, total)
	run.NoLeases(t)
	var after counts
	defer func() {
		t.Logf("before %+v", before)
		t.Logf("after  %+v: %v", after, growth(before, after))
	}()
	harness.Eventually(t, harness.StartBound, "nothing is left, once what was kept for the next view has gone", func() bool {
		after = count(t, run)
		return growth(before, after) == nil
	})
}

func churn(t *testing.T, run *harness.Run, workers, total int) {
	t.Helper()
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < total; i += workers {
				if err := look(t.Context(), run, churnNames[i%len(churnNames)]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// look takes a view, touches its memory, and closes it.
func look(ctx context.Context, run *harness.Run, name string) error {
	view, err := run.Session.View(ctx, name)
	if err != nil {
		return err
	}
	data, err := view.Bytes()
	if err == nil && len(data) > 0 {
		_ = data[len(data)-1]
	}
	if closeErr := view.Close(); closeErr != nil {
		return closeErr
	}
	return err
}

// growth names what grew by more than what both runtimes need for themselves.
func growth(before, after counts) []string {
	var grown []string
	check := func(what string, before, after, slack int64) {
		if after > before+slack {
			grown = append(grown, fmt.Sprintf("%s grew from %d to %d", what, before, after))
		}
	}
	number := func(what string, before, after, slack int) { check(what, int64(before), int64(after), int64(slack)) }
	number("host descriptors", before.HostDescriptors, after.HostDescriptors, 2) // the runtime may open its own
	number("host mappings", before.HostMappings, after.HostMappings, 16)         // the Go heap's own
	number("host goroutines", before.HostGoroutines, after.HostGoroutines, 8)    // gRPC's own come and go
	number("program descriptors", before.ProgramDescriptors, after.ProgramDescriptors, 2)
	number("program mappings", before.ProgramMappings, after.ProgramMappings, 32) // thread stacks and arenas
	number("program threads", before.ProgramThreads, after.ProgramThreads, 8)
	number("leases", before.Leases, after.Leases, 0)
	number("references to the arrays", before.References, after.References, 0)
	// What Python keeps of each thread when that first enters it, some hundred blocks: there are up to nine, and
	// a busy machine needs more of them than the warm-up did.
	number("Python blocks", before.Blocks, after.Blocks, 1000)
	number("Python objects", before.ProgramObjects, after.ProgramObjects, 50)
	check("host resident memory", before.HostResident, after.HostResident, 16*mebibyte)
	check("program resident memory", before.ProgramResident, after.ProgramResident, 16*mebibyte)
	return grown
}

// TestTheChecksSeeALeak leaks on purpose: once by forgetting to close views, which the counts must
// show and the garbage collector report, and once in the program.
func TestTheChecksSeeALeak(t *testing.T) {
	run := harness.Start(t, churnScript, harness.Options{})
	churn(t, run, 1, 100)
	run.NoLeases(t)
	before := count(t, run)

	reported := make(chan core.Leak, 300)
	stop := core.ObserveLeaks(func(l core.Leak) { reported <- l })
	defer stop()
	for range 300 {
		if _, err := run.Session.View(t.Context(), "shared"); err != nil {
			t.Fatal(err)
		}
	}
	run.Remote.Exec(t, "hidden = [shared] * 10; more = [[] for _ in range(1000)]")
	after := count(t, run)
	grown := growth(before, after)
	if after.Leases != before.Leases+300 || len(grown) < 4 {
		t.Errorf("300 forgotten views and 1000 objects went unseen: leases %d to %d, %v", before.Leases, after.Leases, grown)
	}
	harness.Eventually(t, 10*time.Second, "the garbage collector reports each forgotten view", func() bool {
		runtime.GC()
		return len(reported) == 300
	})
	if leak := <-reported; leak.Name == "" || len(leak.Stack) == 0 {
		t.Errorf("the report says neither what nor where: %+v", leak)
	}
}
