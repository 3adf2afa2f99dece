package sharedheap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/ndbridge/ndbridge/internal/sharedheap/cmalloc"
)

// preloaded says to this binary that it runs with the library, started by a test of its own.
const preloaded = "SHAREDHEAP_TEST_PRELOADED"

// withHeap runs a test in a second process of this binary that has the library preloaded, and gives
// that process the heap; the first one gets false.
func withHeap(t *testing.T, env ...string) (*Heap, bool) {
	t.Helper()
	if os.Getenv(preloaded) != "" {
		h, ok := Open()
		if !ok {
			t.Fatal("the library is preloaded and not found")
		}
		return h, true
	}
	if _, ok := Open(); ok {
		t.Fatal("a heap without the library")
	}
	lib := filepath.Join(t.TempDir(), "libndbridge-heap.so")
	if out, err := exec.CommandContext(t.Context(), "preload/build.sh", lib).CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), preloaded+"=1", "LD_PRELOAD="+lib, "NDBRIDGE_HEAP_LIBRARIES=*")
	c.Env = append(c.Env, env...)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("with the library: %v\n%s", err, out)
	}
	return nil, false
}

func TestOpenWithoutTheLibrary(t *testing.T) {
	t.Parallel()
	if h, ok := Open(); ok || h != nil {
		t.Errorf("Open() = %v, %v without the library", h, ok)
	}
}

func TestOpenWithAnotherVersion(t *testing.T) {
	t.Parallel()
	if os.Getenv(preloaded) != "" {
		if _, ok := Open(); ok {
			t.Error("a library that speaks another ABI was taken")
		}
		if theirs, ours := Other(); theirs != 4711 || ours == theirs {
			t.Errorf("the library is said to speak %d, and we %d", theirs, ours)
		}
		return
	}
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "other.c"), filepath.Join(dir, "other.so")
	if err := os.WriteFile(source, []byte("const unsigned ndheap_abi = 4711;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), preloaded+"=1", "LD_PRELOAD="+lib)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	h, ok := withHeap(t)
	if !ok {
		return
	}
	if h.Threshold() != 64<<10 {
		t.Errorf("the threshold is %d", h.Threshold())
	}
	for _, size := range []int{64 << 10, 100_000, 3 << 20} {
		addr, memory := cmalloc.Malloc(size)
		first, ok := h.Pin(addr)
		if !ok || !first.Shareable || first.Frozen || first.Available != int64(size) || first.FD < 0 || first.Segment == 0 {
			t.Fatalf("Pin of %d bytes: %+v, %v", size, first, ok)
		}
		inner, ok := h.Pin(addr + 1000)
		if !ok || inner.Available != int64(size)-1000 || inner.Offset != first.Offset+1000 || inner.Segment != first.Segment {
			t.Errorf("an interior pointer: %+v, %v; its block is %+v", inner, ok, first)
		}
		var status syscall.Stat_t
		if err := syscall.Fstat(first.FD, &status); err != nil || first.Device != status.Dev || first.Inode != status.Ino {
			t.Errorf("the file is %d of %d, not %d of %d: %v", first.Inode, first.Device, status.Ino, status.Dev, err)
		}
		pages, err := syscall.Mmap(first.FD, 0, int(first.SegmentSize), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		memory[0], memory[size-1] = 42, 43
		if pages[first.Offset] != 42 || pages[first.Offset+int64(size)-1] != 43 {
			t.Error("the descriptor and the offset do not name the block's pages")
		}
		cmalloc.Free(memory)
		if b, ok := h.Pin(addr); !ok || b != (Block{Freed: true}) {
			t.Errorf("a block that was freed: %+v, %v", b, ok)
		}
		if again, _ := cmalloc.Malloc(size); again == addr {
			t.Error("a pinned block was reused")
		}
		if pages[first.Offset] != 42 {
			t.Error("a pinned block changed")
		}
		if !h.GrantWrite(addr) || !h.Unpin(addr, first.Segment) || !h.Unpin(addr+1000, first.Segment) {
			t.Error("a pinned block that was freed cannot be granted or unpinned")
		}
		if h.Unpin(addr, 0) || h.GrantWrite(addr) {
			t.Error("a block without pins was unpinned or granted")
		}
		if again, _ := cmalloc.Malloc(size); again != addr {
			t.Error("an unpinned block is not reused")
		}
		if err := syscall.Munmap(pages); err != nil {
			t.Error(err)
		}
	}
}

func TestForeignPointers(t *testing.T) {
	t.Parallel()
	h, ok := withHeap(t)
	if !ok {
		return
	}
	small, _ := cmalloc.Malloc(1000)
	large, _ := cmalloc.Malloc(1 << 20)
	ours := make([]byte, 1<<20)
	for _, tt := range []struct {
		name string
		addr uintptr
		ours bool // it is one of the heap's addresses
	}{
		{"null", 0, false},
		{"one", 1, false},
		{"the last address", ^uintptr(0), false},
		{"Go memory", uintptr(unsafe.Pointer(&ours[0])), false},
		{"small C memory", small, false},
		{"before a block", large - 1, true},
		{"after a block", large + 1<<20, true},
		{"addresses that were never used", large + 1<<30, true},
		{"addresses far from all that were used", large + 1<<39, true},
	} {
		name, addr := tt.name, tt.addr
		if b, ok := h.Pin(addr); ok != tt.ours || b != (Block{Freed: tt.ours}) {
			t.Errorf("%s: %+v, %v", name, b, ok)
		}
		if h.Unpin(addr, 0) || h.GrantWrite(addr) {
			t.Errorf("%s was unpinned or granted", name)
		}
	}
}

func TestStatsAndTrim(t *testing.T) {
	t.Parallel()
	h, ok := withHeap(t)
	if !ok {
		return
	}
	before := h.Stats()
	addr, memory := cmalloc.Malloc(1 << 20)
	b, _ := h.Pin(addr)
	live := h.Stats()
	if live.State != On || live.LiveBytes-before.LiveBytes != 1<<20 || live.LiveBlocks-before.LiveBlocks != 1 ||
		live.PinnedBlocks-before.PinnedBlocks != 1 || live.Taken-before.Taken != 1 || live.Descriptors < 1 {
		t.Errorf("with a pinned block: %+v, before: %+v", live, before)
	}
	h.Unpin(addr, b.Segment)
	cmalloc.Free(memory)
	freed := h.Stats()
	if freed.LiveBlocks != before.LiveBlocks || freed.PinnedBlocks != before.PinnedBlocks ||
		freed.Given-before.Given != 1 || freed.WarmBlocks-before.WarmBlocks != 1 || freed.WarmBytes-before.WarmBytes < 1<<20 {
		t.Errorf("after it was freed: %+v, before: %+v", freed, before)
	}
	for idle, want := range map[time.Duration]bool{time.Hour: false, 1 << 62: false} {
		if bytes := h.Trim(idle); (bytes > 0) != want {
			t.Errorf("Trim(%v) gave %d bytes back", idle, bytes)
		}
	}
	if bytes := h.Trim(-1); bytes < 1<<20 {
		t.Errorf("Trim of everything gave %d bytes back", bytes)
	}
	if s := h.Stats(); s.WarmBlocks != 0 || s.WarmBytes != 0 || s.Dropped == before.Dropped {
		t.Errorf("after Trim: %+v", s)
	}
	const large = 16 << 20
	_, memory = cmalloc.Malloc(large)
	cmalloc.Free(memory)
	if s := h.Stats(); s.WarmBytes < large {
		t.Errorf("a heap that is tended keeps %d bytes of %d that were freed", s.WarmBytes, large)
	}
	h.Untend()
	if s := h.Stats(); s.WarmBytes >= large {
		t.Errorf("a heap that nobody tends keeps %d bytes of %d that were freed", s.WarmBytes, large)
	}
}

func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	h, ok := withHeap(t, "NDBRIDGE_HEAP_THRESHOLD=0")
	if !ok {
		return
	}
	addr, _ := cmalloc.Malloc(1 << 20)
	if _, ok := h.Pin(addr); ok || h.Threshold() != 0 || h.Stats().State != Off {
		t.Errorf("pinned %v, threshold %d, %v", ok, h.Threshold(), h.Stats().State)
	}
}
