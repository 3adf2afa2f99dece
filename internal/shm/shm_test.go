package shm_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

var _ core.Memory = (*shm.Mapping)(nil)

// leakName marks the memfds of TestNothingLeaks in /proc.
const leakName = "ndbridge-shm-leak"

func create(t *testing.T, size int64) *os.File {
	t.Helper()
	f, err := shm.Create("ndbridge-shm-test", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func mapped(t *testing.T, f *os.File, size int64, writable bool) *shm.Mapping {
	t.Helper()
	m, err := shm.Map(f, size, writable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestMapWithoutRoom: memory for which there are no addresses is as good as any; the process has no room for it.
func TestMapWithoutRoom(t *testing.T) {
	t.Parallel()
	const size = 1 << 60
	_, err := shm.Map(create(t, size), size, true)
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, unix.ENOMEM) || e.Remedy == "" {
		t.Errorf("%v", err)
	}
}

func TestCreateSealsSize(t *testing.T) {
	t.Parallel()
	f := create(t, 5000)
	if sealed, err := shm.Sealed(f); err != nil || !sealed {
		t.Errorf("Sealed = %v, %v", sealed, err)
	}
	for _, size := range []int64{0, 4999, 5001} {
		if err := f.Truncate(size); !errors.Is(err, unix.EPERM) {
			t.Errorf("Truncate(%d) = %v; want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("adding a seal = %v; want EPERM", err)
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: not close-on-exec", flags, err)
	}
}

func TestCreateRefusesSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -1, math.MinInt64} {
		if f, err := shm.Create("x", size); err == nil {
			t.Errorf("Create(%d) = %v", size, f.Name())
		}
	}
}

func TestSealedOfOtherFiles(t *testing.T) {
	t.Parallel()
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if sealed, err := shm.Sealed(plain); err != nil || sealed {
		t.Errorf("plain file: Sealed = %v, %v", sealed, err)
	}
	fd, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := os.NewFile(uintptr(fd), "unsealed")
	if sealed, err := shm.Sealed(unsealed); err != nil || sealed {
		t.Errorf("unsealed memfd: Sealed = %v, %v", sealed, err)
	}
	if err := unsealed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := shm.Sealed(unsealed); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed file: Sealed = %v; want os.ErrClosed", err)
	}
}

func TestMappingsShareThePages(t *testing.T) {
	t.Parallel()
	f := create(t, 8192)
	a, b := mapped(t, f, 8192, true), mapped(t, f, 100, false)
	if a.Addr() == b.Addr() {
		t.Fatal("both mappings have one address")
	}
	copy(a.Bytes(), "written through a")
	if got := b.Bytes()[:17]; string(got) != "written through a" {
		t.Errorf("b reads %q", got)
	}
	if len(b.Bytes()) != 100 || b.Size() != 100 || b.Writable() || !a.Writable() {
		t.Errorf("b: %d bytes, size %d, writable %v; a writable %v",
			len(b.Bytes()), b.Size(), b.Writable(), a.Writable())
	}
	if _, err := f.WriteAt([]byte("by write(2)"), 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(b.Bytes(), []byte("by write(2)")) {
		t.Errorf("b reads %q", b.Bytes()[:11])
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if a.Bytes()[0] != 'b' {
		t.Error("the mapping did not outlive the file")
	}
}

// TestReplace: a part of a mapping shows another file, and what the kernel refuses to map leaves the mapping as it was. Of a gap, something
// else might come to lie there, which Close would unmap.
func TestReplace(t *testing.T) {
	t.Parallel()
	const huge = 2 << 20 // what pages of files of huge pages have
	before, after := create(t, 4*huge), create(t, huge)
	m := mapped(t, before, 4*huge, true)
	if _, err := after.WriteAt([]byte{'b'}, 0); err != nil {
		t.Fatal(err)
	}
	at := (huge - int64(m.Addr())%huge) % huge // where huge pages may be
	shows := func(want byte) {
		t.Helper()
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if gap := recover(); gap != nil {
				t.Fatal("there is a gap: ", gap)
			}
		}()
		if got := m.Bytes()[at]; got != want {
			t.Errorf("the mapping shows %q, want %q", got, want)
		}
	}
	m.Bytes()[at] = 'a'
	for name, c := range map[string]struct{ kind, seals int }{
		"not to be written":        {0, unix.F_SEAL_SHRINK | unix.F_SEAL_FUTURE_WRITE},
		"pages that there are not": {unix.MFD_HUGETLB | unix.MFD_HUGE_2MB, unix.F_SEAL_SHRINK},
	} {
		fd, err := unix.MemfdCreate("refused", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|c.kind)
		if err != nil {
			t.Logf("%s: this kernel has no such files: %v", name, err)
			continue
		}
		refused := os.NewFile(uintptr(fd), "refused")
		defer refused.Close()
		if err := refused.Truncate(huge); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(refused.Fd(), unix.F_ADD_SEALS, c.seals); err != nil {
			t.Fatal(err)
		}
		err = m.Replace(at, refused, 0, huge)
		if err == nil && c.kind != 0 { // this machine has huge pages to spare
			shows(0)
			if err := m.Replace(at, before, at, huge); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, core.ErrPointer) {
			t.Errorf("%s: Replace = %v, want core.ErrPointer", name, err)
		}
		shows('a')
	}
	if err := m.Replace(at, after, 0, huge); err != nil {
		t.Fatal(err)
	}
	shows('b')
	b := make([]byte, 1)
	m.Bytes()[at] = 'c'
	if _, err := after.ReadAt(b, 0); err != nil || b[0] != 'c' {
		t.Errorf("what was written to the mapping is not in the file: %q, %v", b, err)
	}
}

func TestMapRefuses(t *testing.T) {
	t.Parallel()
	f := create(t, 5000)
	readOnly, err := shm.ReadOnly(f)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	open := func(path string, flags int) *os.File {
		file, err := os.OpenFile(path, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := open(path, os.O_RDONLY)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file     *os.File
		size     int64
		writable bool
	}{
		"one byte past the end":   {f, 5001, false},
		"past the last page":      {f, 8193, false},
		"huge":                    {f, math.MaxInt64, false},
		"zero":                    {f, 0, false},
		"negative":                {f, -1, false},
		"writable of a read-only": {readOnly, 5000, true},
		"write-only file":         {open(path, os.O_WRONLY), 100, false},
		"device":                  {open("/dev/zero", os.O_RDWR), 1, false},
		"directory":               {open(t.TempDir(), os.O_RDONLY), 1, false},
		"proc file":               {open("/proc/self/status", os.O_RDONLY), 1, false},
		"pipe":                    {r, 1, false},
		"closed":                  {closed, 100, false},
	} {
		if m, err := shm.Map(c.file, c.size, c.writable); !errors.Is(err, core.ErrPointer) {
			t.Errorf("%s: Map = %v, %v; want core.ErrPointer", name, m, err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	f := create(t, 4096)
	r, err := shm.ReadOnly(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("WriteAt = %v; want EBADF", err)
	}
	if sealed, err := shm.Sealed(r); err != nil || !sealed {
		t.Errorf("Sealed of the reopened file = %v, %v", sealed, err)
	}
	m := mapped(t, r, 4096, false)
	if err := unix.Mprotect(m.Bytes(), unix.PROT_READ|unix.PROT_WRITE); !errors.Is(err, unix.EACCES) {
		t.Errorf("mprotect to writable = %v; want EACCES", err)
	}
	if _, err := f.WriteAt([]byte("shared"), 0); err != nil {
		t.Fatal(err)
	}
	if got := m.Bytes()[:6]; string(got) != "shared" {
		t.Errorf("read-only mapping reads %q", got)
	}
}

func TestCloseIsIdempotentAndConcurrent(t *testing.T) {
	t.Parallel()
	m := mapped(t, create(t, 4096), 4096, true)
	addr := m.Addr()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m.Bytes() != nil {
		t.Error("Bytes after Close is not nil")
	}
	if m.Addr() != addr || m.Size() != 4096 {
		t.Errorf("after Close: address %#x, size %d", m.Addr(), m.Size())
	}
}

func TestGuardMakesLateReadsFault(t *testing.T) {
	t.Setenv("NDBRIDGE_GUARD", "1")
	m, err := shm.Map(create(t, 4096), 4096, true)
	if err != nil {
		t.Fatal(err)
	}
	late := m.Bytes()
	late[10] = 7
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	addr, fault := faultAddress(func() byte { return late[10] })
	if !fault || addr != m.Addr()+10 {
		t.Fatalf("late read: fault %v at %#x; want one at %#x", fault, addr, m.Addr()+10)
	}
}

// faultAddress runs read and reports whether it faulted, and where.
func faultAddress(read func() byte) (addr uintptr, fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if a, ok := recover().(interface{ Addr() uintptr }); ok {
			addr, fault = a.Addr(), true
		}
	}()
	_ = read()
	return 0, false
}

func TestNothingLeaks(t *testing.T) {
	count := func() (fds, maps int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if target, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(target, leakName) {
				fds++
			}
		}
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return fds, strings.Count(string(text), leakName)
	}
	step := func() {
		f, err := shm.Create(leakName, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		r, err := shm.ReadOnly(f)
		if err != nil {
			t.Fatal(err)
		}
		m, err := shm.Map(r, 1<<20, false)
		if err != nil {
			t.Fatal(err)
		}
		if fds, maps := count(); fds != 2 || maps != 1 {
			t.Fatalf("while open: %d descriptors, %d mappings: the check does not see what it counts", fds, maps)
		}
		if _, err := shm.Map(r, 1<<20, true); err == nil {
			t.Fatal("a read-only file was mapped writable")
		}
		if err := errors.Join(m.Close(), r.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		step()
	}
	if fds, maps := count(); fds != 0 || maps != 0 {
		t.Errorf("%d descriptors and %d mappings are left", fds, maps)
	}
	t.Setenv("NDBRIDGE_GUARD", "1")
	step()
	if fds, maps := count(); fds != 0 || maps != 0 {
		t.Errorf("with the guard: %d descriptors and %d mappings of the file are left", fds, maps)
	}
}
