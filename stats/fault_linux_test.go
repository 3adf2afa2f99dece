package stats_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// mapped is a mapping of a file.
type mapped struct{ bytes []byte }

func (m *mapped) Bytes() []byte { return m.bytes }
func (m *mapped) Size() int64   { return int64(len(m.bytes)) }
func (m *mapped) Addr() uintptr { return coretest.NewMemory(m.bytes).Addr() }
func (m *mapped) Close() error  { return syscall.Munmap(m.bytes) }

// TestTruncatedFile reads an array of whose file only the beginning is left: an error, on every worker.
func TestTruncatedFile(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "array"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{1024, size / 4096}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, &mapped{b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []stats.Options{{}, {Workers: 3, Bins: stats.Auto}, {Sample: 1000}} {
		if _, err := stats.Of(t.Context(), v, &opts); !errors.Is(err, core.ErrPointer) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	if _, err := stats.Image(t.Context(), v, stats.PlaneOf(l), 10, 10, nil); !errors.Is(err, core.ErrPointer) {
		t.Errorf("image: %v", err)
	}
}
