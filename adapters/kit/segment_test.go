package kit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestFileSegment(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 1000)
	b, err := FileSegment(f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := FileSegment(f)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if b.Key() != again.Key() || b.Size() != 1000 || b.Sealed() {
		t.Errorf("keys %v and %v, size %d, sealed %v", b.Key(), again.Key(), b.Size(), b.Sealed())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(false)
	if err != nil {
		t.Fatalf("after the caller closed its file: %v", err)
	}
	defer r.Close()
	if _, err := r.WriteAt([]byte{1}, 0); err == nil {
		t.Error("a descriptor for reading can be written")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Open(false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("opened after Close: %v", err)
	}

	grown, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer grown.Close()
	if _, err := grown.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	readable, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readable.Close()
	larger, err := FileSegment(readable)
	if err != nil {
		t.Fatal(err)
	}
	defer larger.Close()
	if larger.Key() == again.Key() {
		t.Error("a file that has grown has the key of its smaller self")
	}

	memfd, err := shm.Create("sealed", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer memfd.Close()
	sealed, err := FileSegment(memfd)
	if err != nil || !sealed.Sealed() {
		t.Errorf("a sealed memfd: %v", err)
	} else {
		defer sealed.Close()
	}

	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := FileSegment(null); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("a device: %v, want ErrUnsupported", err)
	}
	dir, err := os.Open(filepath.Dir(f.Name()))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := FileSegment(dir); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("a directory: %v, want ErrUnsupported", err)
	}
}

func TestDataSegment(t *testing.T) {
	t.Parallel()
	data := []byte("elements")
	b, err := DataSegment(data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	got := make([]byte, len(data))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) || b.Size() != int64(len(data)) || !b.Sealed() {
		t.Errorf("%q of %d bytes, sealed %v, %v", got, b.Size(), b.Sealed(), err)
	}
	if _, err := DataSegment(nil); err == nil {
		t.Error("memory of no bytes was made")
	}
}
