package mappings

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// file makes a file of n bytes.
func file(t *testing.T, n int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "array data.bin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(n)); err != nil {
		t.Fatal(err)
	}
	return f
}

// mapped maps n bytes of a file, or of no file.
func mapped(t *testing.T, f *os.File, n, protection, flags int) ([]byte, uintptr) {
	t.Helper()
	fd := -1
	if f == nil {
		flags |= unix.MAP_ANONYMOUS
	} else {
		fd = int(f.Fd())
	}
	b, err := unix.Mmap(fd, 0, n, protection, flags)
	if err != nil {
		t.Fatalf("mmap: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			t.Errorf("munmap: %v", err)
		}
	})
	return b, uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}
