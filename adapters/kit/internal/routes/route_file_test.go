package routes

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestPlaceMappedFile(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 5*4096)
	b, start := shmtest.Map(t, f, 5*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	r := newRouter(t, nil)
	a := Array{start + 4096 + 8, doubles(t, 600)}
	p := place(t, r, a, Want{Writable: true, NoCopy: true}, b[4096+8:])
	if p.Route != contract.RouteMappedFile || p.Layout.ReadOnly() || p.Memory.Parts[0].Sealed() {
		t.Errorf("%v, read-only %v, sealed %v", p.Route, p.Layout.ReadOnly(), p.Memory.Parts[0].Sealed())
	}
	w, err := p.Memory.Parts[0].Open(true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteAt([]byte("host"), int64(p.Layout.Offset())); err != nil {
		t.Fatal(err)
	}
	if got := string(b[4096+8:][:4]); got != "host" {
		t.Errorf("the program sees %q after the host wrote", got)
	}

	_, readOnly := shmtest.Map(t, f, 5*4096, unix.PROT_READ, unix.MAP_SHARED)
	again := place(t, r, Array{readOnly, doubles(t, 5)}, Want{}, b)
	if !again.Layout.ReadOnly() {
		t.Error("an array in a read-only mapping is not read-only")
	}
	if again.Memory.Parts[0].Key() != p.Memory.Parts[0].Key() {
		t.Error("two mappings of one file have different keys")
	}
	if _, err := r.place(t.Context(), Array{readOnly, doubles(t, 5)}, Want{Writable: true}); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("writing through a read-only mapping: %v, want ErrReadOnly", err)
	}
}

// A mapping whose offset in the file is not 0.
func TestPlaceMappedPart(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 5*4096)
	b, err := unix.Mmap(int(f.Fd()), 2*4096, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b) //nolint:errcheck // the end of the test
	p := place(t, newRouter(t, nil), Array{shmtest.Addr(b) + 16, doubles(t, 10)}, Want{NoCopy: true}, b[16:])
	if p.Layout.Offset() != 2*4096+16 {
		t.Errorf("offset %d", p.Layout.Offset())
	}
}

func TestPlaceFilesThatMoved(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		do    func(path string, f *os.File) error
		route core.Route
	}{
		{"renamed", func(path string, _ *os.File) error { return os.Rename(path, path+".old") }, contract.RouteMappedFile},
		{"deleted, still open", func(path string, _ *os.File) error { return os.Remove(path) }, contract.RouteMappedFile},
		{"replaced, still open", func(path string, _ *os.File) error {
			if err := os.WriteFile(path+".new", make([]byte, 9*4096), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, contract.RouteMappedFile},
		{"replaced by a pipe", func(path string, _ *os.File) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return unix.Mkfifo(path, 0o600)
		}, contract.RouteMappedFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := shmtest.File(t, 2*4096)
			b, start := shmtest.Map(t, f, 2*4096, unix.PROT_READ, unix.MAP_SHARED)
			if err := tt.do(f.Name(), f); err != nil {
				t.Fatal(err)
			}
			p := place(t, newRouter(t, nil), Array{start, doubles(t, 100)}, Want{}, b)
			if p.Route != tt.route {
				t.Errorf("%v because of %v, want %v", p.Route, p.Reason, tt.route)
			}
		})
	}
}

// Nothing leads to the file any more, unless this process may use /proc/self/map_files.
func TestPlaceFileGone(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 2*4096)
	b, start := shmtest.Map(t, f, 2*4096, unix.PROT_READ, unix.MAP_SHARED)
	if err := errors.Join(os.Remove(f.Name()), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(fmt.Sprintf("/proc/self/map_files/%x-%x", start, start+2*4096))
	p := place(t, newRouter(t, nil), Array{start, doubles(t, 100)}, Want{}, b)
	if err == nil && p.Route != contract.RouteMappedFile {
		t.Errorf("%v because of %v, though the kernel lends the mapped file", p.Route, p.Reason)
	}
	if err != nil && (p.Route != contract.RouteStaged || p.Reason != contract.ReasonFileGone) {
		t.Errorf("%v because of %v, want staged because the file is gone", p.Route, p.Reason)
	}
}

func TestPlaceTruncatedFile(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 4*4096)
	_, start := shmtest.Map(t, f, 4*4096, unix.PROT_READ, unix.MAP_SHARED)
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	r := newRouter(t, nil)
	_, err := r.place(t.Context(), Array{start, doubles(t, 1024)}, Want{})
	if !errors.Is(err, core.ErrPointer) || !strings.Contains(fmt.Sprint(err), "truncated") {
		t.Errorf("an array behind the end of its file: %v, want ErrPointer", err)
	}
	p, err := r.place(t.Context(), Array{start, doubles(t, 512)}, Want{})
	if err != nil {
		t.Fatalf("an array in the part that is left: %v", err)
	}
	if err := p.GiveUp(); err != nil {
		t.Error(err)
	}
}

// TestCopyMappedFiles has a host that maps no file that can shrink.
func TestCopyMappedFiles(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 4*4096)
	b, start := shmtest.Map(t, f, 4*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	r := newRouter(t, nil)
	r.Configure(contract.Settings{CopyMappedFiles: true})
	a := Array{start, doubles(t, 512)}
	if p := place(t, r, a, Want{}, b); p.Route != contract.RouteStaged || p.Reason != contract.ReasonMappedFile || !p.Memory.Parts[0].Sealed() {
		t.Errorf("%v because of %v, sealed %v", p.Route, p.Reason, p.Memory.Parts[0].Sealed())
	}
	for _, want := range []Want{{Writable: true}, {NoCopy: true}} {
		_, err := r.place(t.Context(), a, want)
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrNotShared) || e.Reason != contract.ReasonMappedFile || e.Remedy == "" {
			t.Errorf("%+v: %v", want, err)
		}
	}
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := r.place(t.Context(), Array{start, doubles(t, 1024)}, Want{}); !errors.Is(err, core.ErrPointer) {
		t.Errorf("an array behind the end of its file: %v, want ErrPointer", err)
	}

	memfd, err := shm.Create("sealed", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer memfd.Close()
	b, start = shmtest.Map(t, memfd, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if p := place(t, r, Array{start, doubles(t, 512)}, Want{}, b); p.Route != contract.RouteMappedFile {
		t.Errorf("sealed memory comes as %v because of %v", p.Route, p.Reason)
	}
}

func TestEveryReasonHasARemedy(t *testing.T) {
	t.Parallel()
	for _, r := range []core.Reason{
		contract.ReasonBelowThreshold, contract.ReasonOutsideHeap, contract.ReasonHeapOff, contract.ReasonFrozen,
		contract.ReasonPrivateMapping, contract.ReasonFileGone, contract.ReasonConverted, contract.ReasonNotExportable,
		contract.ReasonHostWithoutGPU, contract.ReasonMappedFile, contract.ReasonMayBeDonated,
	} {
		if usualRemedy[r] == "" {
			t.Errorf("%v has none", r)
		}
	}
}
