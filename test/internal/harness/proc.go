package harness

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Lo, Hi uintptr
	Perms  string // "rw-s"
	Offset int64  // in the file, of Lo
	File   string // "dev:inode", the identity of what is mapped
	Path   string
}

// Place is a byte of a file.
type Place struct {
	File   string // "dev:inode"
	Offset int64
}

// Mappings lists the mappings of a process.
func Mappings(tb testing.TB, pid int) []Mapping {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		tb.Fatal(err)
	}
	var all []Mapping
	for line := range strings.Lines(string(text)) {
		var m Mapping
		var device string
		var inode uint64
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &m.Lo, &m.Hi, &m.Perms, &m.Offset, &device, &inode, &m.Path); err != nil && m.Hi == 0 {
			tb.Fatalf("cannot read %q: %v", line, err)
		}
		m.File = device + ":" + strconv.FormatUint(inode, 10)
		all = append(all, m)
	}
	return all
}

// FilePlace says which byte of which file a process sees at an address.
func FilePlace(tb testing.TB, pid int, addr uintptr) Place {
	tb.Helper()
	for _, m := range Mappings(tb, pid) {
		if m.Lo <= addr && addr < m.Hi {
			return Place{File: m.File, Offset: m.Offset + int64(addr-m.Lo)}
		}
	}
	tb.Fatalf("process %d has nothing mapped at %#x", pid, addr)
	return Place{}
}

// MappingAt gives the mapping that holds an address of a process.
func MappingAt(tb testing.TB, pid int, addr uintptr) Mapping {
	tb.Helper()
	for _, m := range Mappings(tb, pid) {
		if m.Lo <= addr && addr < m.Hi {
			return m
		}
	}
	tb.Fatalf("process %d has nothing mapped at %#x", pid, addr)
	return Mapping{}
}

// Frame gives the number of the physical page behind an address of a process; ok is false where
// the kernel does not tell (it tells root only) or the page is not present.
func Frame(tb testing.TB, pid int, addr uintptr) (frame uint64, ok bool) {
	tb.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if errors.Is(err, fs.ErrPermission) {
		return 0, false
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var entry [8]byte
	if _, err := file.ReadAt(entry[:], int64(addr)/int64(os.Getpagesize())*8); err != nil {
		tb.Fatal(err)
	}
	const present, frameBits = 1 << 63, 1<<55 - 1
	word := binary.LittleEndian.Uint64(entry[:])
	return word & frameBits, word&present != 0 && word&frameBits != 0
}

// Memory is what a process holds in RAM, in bytes.
type Memory struct {
	Resident int64
	Private  int64 // pages that no other process shares
}

// MemoryOf reads /proc/PID/smaps_rollup.
func MemoryOf(tb testing.TB, pid int) Memory {
	tb.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var m Memory
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		switch fields[0] {
		case "Rss:":
			m.Resident = kib << 10
		case "Private_Clean:", "Private_Dirty:", "Private_Hugetlb:":
			m.Private += kib << 10
		}
	}
	return m
}

// Descriptors counts the open descriptors of a process.
func Descriptors(tb testing.TB, pid int) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		tb.Fatal(err)
	}
	return len(entries)
}

// Alive reports whether a process exists and is not a zombie.
func Alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the command's name, which may hold anything but ends with the last ')'.
	_, state, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	return ok && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// Eventually waits until a condition holds and gives how long it took; it fails the test after
// the bound.
func Eventually(tb testing.TB, bound time.Duration, what string, condition func() bool) time.Duration {
	tb.Helper()
	start := time.Now()
	for {
		if condition() {
			return time.Since(start)
		}
		if time.Since(start) > bound {
			tb.Fatalf("not within %v: %s", bound, what)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polling what other processes do, bounded
	}
}

// Threads counts the threads of a process.
func Threads(tb testing.TB, pid int) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		tb.Fatal(err)
	}
	return len(entries)
}
