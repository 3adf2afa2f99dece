package kit

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mapped maps n bytes for one test: anonymous memory, or f's, and gives their address.
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
	return b, addr(b)
}

// anonymous is memory of no file, as a framework's small arrays have, with bytes that all differ
// from their neighbours.
func anonymous(t *testing.T, n int) ([]byte, uintptr) {
	t.Helper()
	b, at := mapped(t, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	fill(b)
	return b, at
}

func addr(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }

func fill(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
}

// file makes a file of n filled bytes.
func file(t *testing.T, n int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "array data.bin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	b := make([]byte, n)
	fill(b)
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return f
}

func layout(t *testing.T, s core.LayoutSpec) core.Layout {
	t.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// elements reads the elements of an array in row-major order from memory whose first byte is b[0].
func elements(b []byte, l core.Layout) []byte {
	var out bytes.Buffer
	for offset := range l.Offsets() {
		out.Write(b[offset : offset+l.DType().Size()])
	}
	return out.Bytes()
}

// contents reads the file behind a backing, through a descriptor as a host gets it.
func contents(t *testing.T, b Backing) []byte {
	t.Helper()
	f, err := b.Open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make([]byte, b.Size())
	if _, err := f.ReadAt(out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// fakeBacking counts what happens to it.
type fakeBacking struct {
	key    any
	closed int
	during func() // called inside Open
}

func (b *fakeBacking) Key() any     { return b.key }
func (b *fakeBacking) Size() int64  { return 4096 }
func (b *fakeBacking) Sealed() bool { return false }
func (b *fakeBacking) Close() error { b.closed++; return nil }

func (b *fakeBacking) Open(bool) (*os.File, error) {
	if b.during != nil {
		b.during()
	}
	return os.Open(os.DevNull)
}
