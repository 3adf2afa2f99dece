// Package mappingstest makes the memory that tests look at from outside.
package mappingstest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// File makes a file of n bytes that all differ from their neighbours. Its name has a space.
func File(t *testing.T, n int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "array data.bin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // some tests have
	b := make([]byte, n)
	Fill(b)
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return f
}

// Map maps n bytes for one test: anonymous memory, or f's, and gives their address.
func Map(t *testing.T, f *os.File, n, protection, flags int) ([]byte, uintptr) {
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
	return b, Addr(b)
}

// Addr is the address of the first byte.
func Addr(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }

// Fill makes all bytes differ from their neighbours.
func Fill(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
}
