package shm

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestParseMapping(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want Mapped
	}{
		{
			"7f1000-7f3000 rw-s 00001000 08:01 1234                       /data/a b.npy",
			Mapped{
				Start: 0x7f1000, End: 0x7f3000, Writable: true, Shared: true, Offset: 4096,
				file: fileID{dev: unix.Mkdev(8, 1), ino: 1234}, Path: "/data/a b.npy",
			},
		}, {
			"55d0-55e0 r--p 00000000 00:00 0 ", Mapped{Start: 0x55d0, End: 0x55e0},
		}, {
			"55d0-55e0 rw-p 00000000 00:00 0                                  [heap]",
			Mapped{Start: 0x55d0, End: 0x55e0, Writable: true, Path: "[heap]"},
		}, {
			`10-20 r--s 00000000 103:2a 77 /tmp/two\012lines (deleted)`,
			Mapped{
				Start: 0x10, End: 0x20, Shared: true, file: fileID{unix.Mkdev(0x103, 0x2a), 77},
				Path: "/tmp/two\nlines (deleted)",
			},
		}, {
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
			Mapped{Start: 0xffffffffff600000, End: 0xffffffffff601000, Path: "[vsyscall]"},
		},
	}
	for _, tt := range tests {
		got, err := ParseMapping(tt.line)
		if err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
	for _, line := range []string{
		"", "7f10", "7f10-7f20", "7f10-7f20 rw-p", "7f10-7f20 rw-p 0 8:1", "x-y rw-p 0 8:1 1 /a",
		"20-10 rw-p 0 8:1 1", "10-10 rw-p 0 8:1 1", "10-20 rw 0 8:1 1", "10-20 rw-p -1 8:1 1",
		"10-20 rw-p 0 81 1", "10-20 rw-p 0 8:1 -1", "10-20 rw-p ffffffffffffffff 8:1 1 /a",
		"10-20  rw-p 0 8:1 1",
	} {
		if m, err := ParseMapping(line); err == nil {
			t.Errorf("%q was read as %+v", line, m)
		}
	}
}

func FuzzMappings(f *testing.F) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.SplitSeq(string(maps), "\n") {
		f.Add(line, uint64(0))
	}
	f.Add("10-20 rw-s 0 8:1 1 /a\n20-30 rw-s 10 8:1 1 /a\n", uint64(0x25))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		m, ok, err := scanMappings(strings.NewReader(text), uintptr(addr))
		if ok && (err != nil || uint64(m.Start) > addr || addr >= uint64(m.End)) {
			t.Errorf("%#x: %+v, %v", addr, m, err)
		}
		if ok && (m.Offset < 0 || strings.Contains(m.Path, `\012`)) {
			t.Errorf("%+v", m)
		}
	})
}

// The kernel's answer and its table must say the same of every mapping there is.
func TestQueryAgreesWithTable(t *testing.T) {
	t.Parallel()
	f := shmtest.File(t, 3*4096)
	_, start := shmtest.Map(t, f, 3*4096, unix.PROT_READ, unix.MAP_SHARED)
	_, private := shmtest.Map(t, f, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	_, anonymous := shmtest.Map(t, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	table, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	raw, err := table.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := queryMapping(raw, 0, false); err != nil {
		t.Skipf("a kernel before 6.11 has no such query, so there is nothing to compare: %v", err)
	}
	for _, addr := range []uintptr{start, start + 4096, start + 3*4096 - 1, private, anonymous, 16} {
		text, err := os.Open("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		want, wantOK, err := scanMappings(text, addr)
		text.Close()
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := queryMapping(raw, addr, true)
		if err != nil || ok != wantOK || got != want {
			t.Errorf("%#x: the query says %+v %v %v, the table %+v %v", addr, got, ok, err, want, wantOK)
		}
	}
}

func TestCoveringJoinsNeighbours(t *testing.T) {
	t.Parallel()
	t.Run("by query", func(t *testing.T) {
		t.Parallel()
		testCovering(t, new(Mappings))
	})
	t.Run("by reading the table", func(t *testing.T) {
		t.Parallel()
		table := new(Mappings)
		table.Hold()
		table.quick = false // as if the kernel had no query
		testCovering(t, table)
	})
}

func testCovering(t *testing.T, table *Mappings) {
	t.Helper()
	f := shmtest.File(t, 8*4096)
	b, start := shmtest.Map(t, f, 8*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err := unix.Mprotect(b[3*4096:5*4096], unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	m, ok, err := table.Covering(start+10, 8*4096-10)
	if err != nil || !ok || m.Start != start || m.End != start+8*4096 || m.Writable {
		t.Errorf("the whole: %+v, %v, %v", m, ok, err)
	}
	m, ok, err = table.Covering(start+10, 4096)
	if err != nil || !ok || m.End != start+3*4096 || !m.Writable || m.Offset != 0 {
		t.Errorf("the first part: %+v, %v, %v", m, ok, err)
	}
	if _, ok, err := table.Covering(16, 1); ok || err != nil {
		t.Errorf("nothing is mapped at 16: %v, %v", ok, err)
	}
}

// TestShows: a part that is mapped from elsewhere, or from another place of the file, is noticed wherever it is.
func TestShows(t *testing.T) {
	t.Parallel()
	const pages, page = 8, 4096
	var table Mappings
	t.Cleanup(table.Close)
	if table.Hold(); !table.quick {
		t.Skip("a kernel before 6.11 does not say")
	}
	f, other := shmtest.File(t, pages*page), shmtest.File(t, pages*page)
	shows := func(addr uintptr, n int64, f *os.File, offset int64) bool {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			t.Error(err)
		}
		return table.Shows(addr, n, st.Dev, st.Ino, offset)
	}
	for _, tt := range []struct {
		name   string
		over   *os.File // nil: anonymous
		flags  int
		offset int64
		same   bool
	}{
		{"itself", f, unix.MAP_SHARED, 3 * page, true},
		{"another part", f, unix.MAP_SHARED, 4 * page, false},
		{"private", f, unix.MAP_PRIVATE, 3 * page, false},
		{"another file", other, unix.MAP_SHARED, 3 * page, false},
		{"anonymous memory", nil, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, start := shmtest.Map(t, f, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			fd := -1
			if tt.over != nil {
				fd = int(tt.over.Fd())
			}
			if !shows(start+10, pages*page-10, f, 10) || shows(start+10, page, f, 11) || shows(start, page, other, 0) {
				t.Error("what is mapped as it was is not taken for it, or something else is")
			}
			if err := mapOver(start+3*page, page, fd, tt.flags, tt.offset); err != nil {
				t.Fatal(err)
			}
			for _, part := range []struct {
				from, to int
				want     bool
			}{{0, 3, true}, {4, 8, true}, {0, 8, tt.same}, {3, 4, tt.same}, {2, 4, tt.same}, {3, 8, tt.same}} {
				lo := uintptr(part.from * page)
				if got := shows(start+lo, int64(part.to-part.from)*page, f, int64(lo)); got != part.want {
					t.Errorf("pages %d to %d: %v", part.from, part.to, got)
				}
			}
		})
	}
}

// TestFilled: a program is not taken for one in whose memory only its threads write, if there is more.
func TestFilled(t *testing.T) {
	t.Parallel()
	const heap = "7f10a0000000-7f10a0100000 rw-s 00000000 00:01 77                         /memfd:ndbridge-heap (deleted)\n"
	for line, want := range map[string]bool{
		"": false,
		"7f10b0000000-7f10b0001000 rw-p 00000000 00:00 0 \n":                           false,
		"7f10b0000000-7f10b0001000 rw-s 00000000 00:0e 9    anon_inode:[io_uring]\n":   true,
		"7f10b0000000-7f10b0001000 rw-s 00000000 00:13 9    /[aio] (deleted)\n":        true,
		"7f10b0000000-7f10b0001000 -w-s 00000000 00:06 9    /dev/infiniband/uverbs0\n": true,
		"7f10b0000000-7f10b0001000 r--p 00000000 08:01 9    /aio/infiniband/a.npy\n":   false,
		"something that nobody understands\n":                                          true,
	} {
		if got := filled(strings.NewReader(heap + line + heap)); got != want {
			t.Errorf("with %q: %v", line, got)
		}
	}
	var table Mappings
	t.Cleanup(table.Close)
	if table.Filled() {
		t.Error("this process uses none of these")
	}
}

// mapOver maps something in the place of what is mapped there.
func mapOver(addr, n uintptr, fd, flags int, offset int64) error {
	_, _, errno := unix.Syscall6(unix.SYS_MMAP, addr, n, unix.PROT_READ, uintptr(flags|unix.MAP_FIXED), uintptr(fd), uintptr(offset))
	if errno != 0 {
		return errno
	}
	return nil
}

// TestFilledBesideOthers: several who ask at once, while mappings come and go, do not see half lines.
func TestFilledBesideOthers(t *testing.T) {
	t.Parallel()
	var table Mappings
	t.Cleanup(table.Close)
	var over atomic.Bool
	var mapper, askers sync.WaitGroup
	mapper.Go(func() {
		for n := 1; !over.Load(); n = n%64 + 1 {
			b, err := unix.Mmap(-1, 0, n*4096, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
			if err != nil {
				t.Error(err)
				return
			}
			if err := unix.Munmap(b); err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		askers.Go(func() {
			for range 500 {
				if table.Filled() {
					t.Error("the table has a line that nobody understands")
					return
				}
			}
		})
	}
	askers.Wait()
	over.Store(true)
	mapper.Wait()
}
