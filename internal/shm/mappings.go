//go:build linux

package shm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileID is a file as the kernel's mapping table names it.
type fileID struct{ dev, ino uint64 }

// Mapped is one line of /proc/self/maps, or several of one file that follow each other.
type Mapped struct {
	Start, End uintptr
	Writable   bool
	Shared     bool
	Offset     int64  // where in the file Start lies
	Path       string // as the kernel prints it, or ""

	file            fileID  // zero for anonymous memory
	first, firstEnd uintptr // start and end of the first line, if several were joined
}

// Anonymous says whether no file is mapped there.
func (m Mapped) Anonymous() bool { return m.file.ino == 0 }

// continues reports whether m goes on where the mapping before it ended, in memory and in the file.
func (m Mapped) continues(before Mapped) bool {
	return m.Start == before.End && m.Shared == before.Shared && m.file == before.file &&
		m.Offset == before.Offset+int64(before.End-before.Start)
}

// Mappings answers what this process's addresses are mapped from. Its zero value is ready; it is
// safe for concurrent use.
type Mappings struct {
	once  sync.Once
	maps  *os.File        // nil: err says why
	raw   syscall.RawConn // to it
	err   error
	quick bool // the kernel answers queries

	reading sync.Mutex // held by who reads the text: for two at once the kernel would begin anew, in the middle of a line
}

// Hold opens what the table reads, which later might be out of reach (chroot, a limit on open files). Otherwise
// the first question does.
func (t *Mappings) Hold() {
	t.once.Do(func() {
		if t.maps, t.err = os.Open("/proc/self/maps"); t.err != nil {
			return
		}
		var err error
		if t.raw, err = t.maps.SyscallConn(); err == nil {
			_, _, err = queryMapping(t.raw, 0, false)
		}
		t.quick = err == nil
	})
}

// at finds the mapping that covers addr; ok is false if there is none.
func (t *Mappings) at(addr uintptr) (m Mapped, ok bool, err error) {
	t.Hold()
	switch {
	case t.maps == nil:
		return Mapped{}, false, t.err
	case t.quick:
		return queryMapping(t.raw, addr, true)
	default:
		t.reading.Lock()
		defer t.reading.Unlock()
		return scanMappings(t.text(), addr)
	}
}

// text is what the table says. Wants reading.
func (t *Mappings) text() io.Reader { return io.NewSectionReader(t.maps, 0, math.MaxInt64) }

// Shows reports whether [addr, addr+n) is mapped, shared, from a memfd, given by its device and inode, from offset on. It
// takes it for true where the kernel does not answer quickly (before Linux 6.11).
func (t *Mappings) Shows(addr uintptr, n int64, dev, ino uint64, offset int64) bool {
	if t.Hold(); !t.quick {
		return true
	}
	for end := addr + uintptr(n); addr < end; {
		m, ok, err := queryMapping(t.raw, addr, false)
		switch {
		case err != nil:
			return true
		case !ok, !m.Shared, m.file != fileID{dev, ino}, m.Offset+int64(addr-m.Start) != offset:
			return false
		}
		offset += int64(m.End - addr)
		addr = m.End
	}
	return true
}

// fillers are what a program has mapped if the kernel or a device may write to its memory beside all its threads.
var fillers = []string{"anon_inode:[io_uring]", "/[aio]", "/dev/infiniband/"}

// Filled reports whether the kernel or a device may be writing to this process's memory on behalf of no thread: by
// io_uring, Linux's asynchronous I/O or RDMA. It takes it for true where it cannot be found out.
func (t *Mappings) Filled() bool {
	t.Hold()
	t.reading.Lock()
	defer t.reading.Unlock()
	return t.maps == nil || filled(t.text())
}

func filled(maps io.Reader) bool {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		m, err := ParseMapping(lines.Text())
		if err != nil || slices.ContainsFunc(fillers, func(name string) bool { return strings.HasPrefix(m.Path, name) }) {
			return true
		}
	}
	return lines.Err() != nil
}

// Covering finds what [addr, addr+n) is mapped from, joining neighbours of one file. The answer may
// end before addr+n: then something else, or nothing, follows.
func (t *Mappings) Covering(addr uintptr, n int64) (m Mapped, ok bool, err error) {
	m, ok, err = t.at(addr)
	m.first, m.firstEnd = m.Start, m.End
	if !ok || err != nil || m.Anonymous() {
		return m, ok, err
	}
	for int64(m.End-addr) < n {
		next, ok, err := t.at(m.End)
		if err != nil {
			return Mapped{}, false, err
		}
		if !ok || !next.continues(m) {
			break
		}
		m.End = next.End
		m.Writable = m.Writable && next.Writable
	}
	return m, true, nil
}

// Close gives up what the table has open.
func (t *Mappings) Close() {
	t.once.Do(func() {})
	if t.maps != nil {
		t.maps.Close() //nolint:errcheck // only read
	}
}

// scanMappings finds the mapping that covers addr in the text of /proc/self/maps.
func scanMappings(r io.Reader, addr uintptr) (m Mapped, ok bool, err error) {
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return Mapped{}, false, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Mapped{}, false, err
		}
		m, err := ParseMapping(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return Mapped{}, false, err
		}
		if m.Start <= addr && addr < m.End {
			return m, true, nil
		}
	}
}

// ParseMapping reads one line of a process's table: "7f10-7f20 rw-s 00001000 08:01 1234    /some/file".
func ParseMapping(line string) (Mapped, error) {
	bad := func() (Mapped, error) {
		return Mapped{}, fmt.Errorf("/proc/self/maps: unknown line %q", line)
	}
	var fields [5]string
	rest := line
	for i := range fields {
		var found bool
		fields[i], rest, found = strings.Cut(rest, " ")
		if fields[i] == "" || !found && i < len(fields)-1 {
			return bad()
		}
	}
	from, to, ok := strings.Cut(fields[0], "-")
	major, minor, ok2 := strings.Cut(fields[3], ":")
	if !ok || !ok2 || len(fields[1]) != 4 {
		return bad()
	}
	var err error
	number := func(s string, base, bits int) uint64 {
		n, e := strconv.ParseUint(s, base, bits)
		err = errors.Join(err, e)
		return n
	}
	m := Mapped{
		Start:    uintptr(number(from, 16, 64)),
		End:      uintptr(number(to, 16, 64)),
		Writable: fields[1][1] == 'w',
		Shared:   fields[1][3] == 's',
		Offset:   int64(number(fields[2], 16, 63)),
		file: fileID{
			dev: unix.Mkdev(uint32(number(major, 16, 32)), uint32(number(minor, 16, 32))),
			ino: number(fields[4], 10, 64),
		},
		Path: strings.TrimLeft(rest, " "),
	}
	if err != nil || m.Start >= m.End {
		return bad()
	}
	// The kernel escapes only newlines here.
	m.Path = strings.ReplaceAll(m.Path, `\012`, "\n")
	return m, nil
}
