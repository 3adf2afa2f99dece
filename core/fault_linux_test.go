package core_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// mapped is a mapping of a file.
type mapped struct{ bytes []byte }

func (m *mapped) Bytes() []byte { return m.bytes }
func (m *mapped) Size() int64   { return int64(len(m.bytes)) }
func (m *mapped) Addr() uintptr { return coretest.NewMemory(m.bytes).Addr() }
func (m *mapped) Close() error  { return syscall.Munmap(m.bytes) }

// truncated gives a writable view of rows of one page each over a file of which only the first page
// is left.
func truncated(t *testing.T) *core.View {
	t.Helper()
	page := os.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "array"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(4 * page)); err != nil {
		t.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	v := open(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4, page / 4}}, &mapped{bytes: b},
		&core.ViewOptions{Name: "frame", Writable: true})
	if err := f.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFaultsAreErrors(t *testing.T) {
	t.Parallel()
	v := truncated(t)
	turned, err := v.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, turned)
	n := v.Len()
	for name, use := range map[string]func() error{
		"at":              func() error { _, err := core.At[float32](v, 3, 5); return err },
		"set":             func() error { return core.Set[float32](v, 1, 1, 0) },
		"copy":            func() error { _, err := core.Copy(t.Context(), make([]float32, n), v); return err },
		"copy transposed": func() error { _, err := core.Copy(t.Context(), make([]float32, n), turned); return err },
		"put":             func() error { _, err := core.Put(t.Context(), v, make([]float32, n)); return err },
		"put transposed":  func() error { _, err := core.Put(t.Context(), turned, make([]float32, n)); return err },
		"copy bytes":      func() error { _, err := core.CopyBytes(t.Context(), make([]byte, 4*n), v); return err },
	} {
		err := use()
		op, _, _ := strings.Cut(name, " ")
		if !errors.Is(err, core.ErrPointer) || !strings.HasPrefix(err.Error(), op+" frame: ") ||
			!strings.Contains(err.Error(), "truncated") || strings.Contains(err.Error(), "runtime error") {
			t.Errorf("%s: %v", name, err)
		}
		if debug.SetPanicOnFault(false) {
			t.Errorf("%s: faults stay panics", name)
		}
	}
	if x, err := core.At[float32](v, 0, 5); err != nil || x != 0 {
		t.Errorf("what is left of the file: %v, %v", x, err)
	}
	first, err := v.Select(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, first)
	if m, err := core.Copy(t.Context(), make([]float32, n), first); err != nil || m != n/4 {
		t.Errorf("the part of the view that is left: %d, %v", m, err)
	}
}

// TestFaultsKeepTheSetting has a caller that wants panics himself.
func TestFaultsKeepTheSetting(t *testing.T) {
	t.Parallel()
	v := truncated(t)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if _, err := core.At[float32](v, 3, 5); !errors.Is(err, core.ErrPointer) {
		t.Error(err)
	}
	if !debug.SetPanicOnFault(true) {
		t.Error("the caller's setting is gone")
	}
}

// TestOtherFaultsPanic: only faults of the view's own memory are errors of the view.
func TestOtherFaultsPanic(t *testing.T) {
	t.Parallel()
	good := coretest.NewView(t, make([]float32, 1024))
	defer shut(t, good)
	bad := truncated(t)
	dst, err := core.Slice[float32](bad)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		fault, ok := recover().(interface{ Addr() uintptr })
		if !ok || fault.Addr() < bad.Addr() || fault.Addr() >= bad.Addr()+uintptr(bad.NBytes()) {
			t.Errorf("recovered %v", fault)
		}
	}()
	n, err := core.Copy(t.Context(), dst[len(dst)-1024:], good)
	t.Errorf("a copy to memory that has gone: %d, %v", n, err)
}
