package e2e

import (
	"errors"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	gibibyte = 1 << 30
	mebibyte = 1 << 20
)

// TestGigabyteIsNotCopied looks at 1 GiB from the host and holds that it is the program's own: what
// either side writes the other reads, the pages are the same file's and the same RAM's, and the
// host's private memory stays what it was.
func TestGigabyteIsNotCopied(t *testing.T) {
	run := harness.Start(t, `
import numpy as np, remote
big = np.full(1 << 27, 3.5)
remote.serve()
`, harness.Options{})
	run.View(t, "big").Close() // so that what a first view costs once is not counted below
	before := harness.MemoryOf(t, os.Getpid())

	view := run.View(t, "big", hostplugin.Writable())
	if view.Route() != contract.RouteSharedHeap || view.Copied() || view.NBytes() != gibibyte {
		t.Fatalf("route %v (%v), %d bytes; want shared-heap, %d", view.Route(), view.Reason(), view.NBytes(), gibibyte)
	}
	data, err := core.Slice[float64](view)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, x := range data {
		sum += x
	}
	if want := 3.5 * (1 << 27); sum != want {
		t.Errorf("sum is %v, want %v", sum, want)
	}

	for _, i := range []int{0, 1 << 20, 1<<27 - 1} {
		run.Remote.Exec(t, "big["+itoa(i)+"] = "+itoa(i+1))
		if data[i] != float64(i+1) {
			t.Errorf("element %d is %v after Python wrote %d", i, data[i], i+1)
		}
		data[i] = float64(-i - 1)
		if got := harness.Eval[float64](t, run.Remote, "float(big["+itoa(i)+"])"); got != float64(-i-1) {
			t.Errorf("Python sees element %d as %v after the host wrote %d", i, got, -i-1)
		}
	}
	samePages(t, run, "big", view)

	after := harness.MemoryOf(t, os.Getpid())
	if grown := after.Private - before.Private; grown > mebibyte {
		t.Errorf("the host's private memory grew by %d bytes while it read 1 GiB; at most %d", grown, mebibyte)
	}
}

// TestMappedFileIsNotCopied does the same for an array that lies in a file.
func TestMappedFileIsNotCopied(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote, tempfile
file = tempfile.NamedTemporaryFile()
mapped = np.memmap(file.name, dtype="int32", mode="w+", shape=(1 << 20,))
mapped[:] = np.arange(1 << 20)
window = mapped[4096:8192]
remote.serve()
`, harness.Options{})
	view := run.View(t, "window", hostplugin.Writable())
	if view.Route() != contract.RouteMappedFile || view.Copied() {
		t.Fatalf("route %v (%v), want mapped-file", view.Route(), view.Reason())
	}
	data, err := core.Slice[int32](view)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != 4096 || data[0] != 4096 || data[4095] != 8191 {
		t.Fatalf("%d elements, first %d", len(data), data[0])
	}
	data[7] = -7
	if got := harness.Eval[int](t, run.Remote, "int(mapped[4103])"); got != -7 {
		t.Errorf("Python sees %d after the host wrote -7", got)
	}
	run.Remote.Exec(t, "window[8] = -8")
	if data[8] != -8 {
		t.Errorf("the host sees %d after Python wrote -8", data[8])
	}
	samePages(t, run, "window", view)
}

// TestReadOnlyIsAProperty holds that a view taken without Writable cannot be written: its pages are
// mapped without the right to.
func TestReadOnlyIsAPropertyOfTheMapping(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
a = np.zeros(1 << 16)
remote.serve()
`, harness.Options{})
	view := run.View(t, "a")
	if view.Writable() {
		t.Error("a view is writable without having been asked for as such")
	}
	if perms := harness.MappingAt(t, os.Getpid(), view.Addr()).Perms; perms[1] != '-' {
		t.Errorf("the mapping's permissions are %s; want no w", perms)
	}
}

// samePages holds that the host's view lies in the very file and the very physical pages that the
// program sees at its array's address.
func samePages(t *testing.T, run *harness.Run, array string, view *core.View) {
	t.Helper()
	pid := run.PID(t)
	addr := uintptr(harness.Eval[uint64](t, run.Remote, array+".__array_interface__['data'][0]"))
	if theirs, ours := harness.FilePlace(t, pid, addr), harness.FilePlace(t, os.Getpid(), view.Addr()); theirs != ours {
		t.Errorf("the program's array lies in %+v, the host's view in %+v", theirs, ours)
	}
	if os.Getuid() != 0 {
		t.Log("page frame numbers are not compared: only root may read them")
		return
	}
	for _, offset := range []int64{0, view.NBytes() / 2, view.NBytes() - 1} {
		theirs, ok := harness.Frame(t, pid, addr+uintptr(offset))
		ours, ok2 := harness.Frame(t, os.Getpid(), view.Addr()+uintptr(offset))
		if !ok || !ok2 {
			t.Fatalf("the kernel does not tell the page frame at byte %d", offset)
		}
		if theirs != ours {
			t.Errorf("byte %d is in page frame %#x of the program and %#x of the host", offset, theirs, ours)
		}
	}
}

// TestCopyLargerThanMemory: an array may be larger than memory, as this one is, whose pages are made as they are
// touched. A copy of it is refused, and harms nobody.
func TestCopyLargerThanMemory(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import mmap
import numpy as np, remote
noreserve = 0x4000
memory = mmap.mmap(-1, 1 << 42, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | noreserve)
a = np.frombuffer(memory, "u1")
remote.serve()
`, harness.Options{})
	_, err := run.Session.View(t.Context(), "a")
	if failure, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnsupported) || failure.Remedy == "" {
		t.Fatalf("view of 4 TiB: %v, want an error with a remedy", err)
	}
	run.Remote.Exec(t, "part = a[-1000:]; part[:] = 7")
	part := run.View(t, "part")
	if data := slice[uint8](t, part); len(data) != 1000 || data[999] != 7 {
		t.Errorf("the end of the array: %v", data)
	}
	closed(t, part)
	run.NoLeases(t)
}
