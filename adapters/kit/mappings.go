package kit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// fileID is a file as the kernel's mapping table names it.
type fileID struct{ dev, ino uint64 }

// mapping is one line of /proc/self/maps, or several of one file that follow each other.
type mapping struct {
	start, end      uintptr
	first, firstEnd uintptr // start and end of the first line, if several were joined
	writable        bool
	shared          bool
	offset          int64  // where in the file start lies
	file            fileID // zero for anonymous memory
	path            string // as the kernel prints it, or ""
}

func (m mapping) anonymous() bool { return m.file.ino == 0 }

// continues reports whether m goes on where the mapping before it ended, in memory and in the file.
func (m mapping) continues(before mapping) bool {
	return m.start == before.end && m.shared == before.shared && m.file == before.file &&
		m.offset == before.offset+int64(before.end-before.start)
}

// mapTable answers what this process's addresses are mapped from. Its zero value is ready; it is
// safe for concurrent use.
type mapTable struct {
	once sync.Once
	maps *os.File // for queries; nil if the kernel has none
}

// at finds the mapping that covers addr; ok is false if there is none.
func (t *mapTable) at(addr uintptr) (m mapping, ok bool, err error) {
	t.once.Do(func() {
		f, err := os.Open("/proc/self/maps")
		if err != nil {
			return
		}
		if _, _, err := queryMapping(f, 0); err != nil {
			f.Close() //nolint:errcheck // only read
			return
		}
		t.maps = f
	})
	if t.maps != nil {
		return queryMapping(t.maps, addr)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return mapping{}, false, err
	}
	defer f.Close() //nolint:errcheck // only read
	return scanMappings(f, addr)
}

// covering finds what [addr, addr+n) is mapped from, joining neighbours of one file. The answer may
// end before addr+n: then something else, or nothing, follows.
func (t *mapTable) covering(addr uintptr, n int64) (m mapping, ok bool, err error) {
	m, ok, err = t.at(addr)
	m.first, m.firstEnd = m.start, m.end
	if !ok || err != nil || m.anonymous() {
		return m, ok, err
	}
	for int64(m.end-addr) < n {
		next, ok, err := t.at(m.end)
		if err != nil {
			return mapping{}, false, err
		}
		if !ok || !next.continues(m) {
			break
		}
		m.end = next.end
		m.writable = m.writable && next.writable
	}
	return m, true, nil
}

func (t *mapTable) close() {
	t.once.Do(func() {})
	if t.maps != nil {
		t.maps.Close() //nolint:errcheck // only read
	}
}

// scanMappings finds the mapping that covers addr in the text of /proc/self/maps.
func scanMappings(r io.Reader, addr uintptr) (m mapping, ok bool, err error) {
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return mapping{}, false, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return mapping{}, false, err
		}
		m, err := parseMapping(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return mapping{}, false, err
		}
		if m.start <= addr && addr < m.end {
			return m, true, nil
		}
	}
}

// parseMapping reads one line: "7f10-7f20 rw-s 00001000 08:01 1234    /some/file".
func parseMapping(line string) (mapping, error) {
	bad := func() (mapping, error) {
		return mapping{}, fmt.Errorf("/proc/self/maps: unknown line %q", line)
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
	m := mapping{
		start:    uintptr(number(from, 16, 64)),
		end:      uintptr(number(to, 16, 64)),
		writable: fields[1][1] == 'w',
		shared:   fields[1][3] == 's',
		offset:   int64(number(fields[2], 16, 63)),
		file: fileID{
			dev: unix.Mkdev(uint32(number(major, 16, 32)), uint32(number(minor, 16, 32))),
			ino: number(fields[4], 10, 64),
		},
		path: strings.TrimLeft(rest, " "),
	}
	if err != nil || m.start >= m.end {
		return bad()
	}
	// The kernel escapes only newlines here.
	m.path = strings.ReplaceAll(m.path, `\012`, "\n")
	return m, nil
}
