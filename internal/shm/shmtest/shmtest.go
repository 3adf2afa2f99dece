// Package shmtest makes memory for tests: such as two processes share, and such as is looked at from outside.
package shmtest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// Twice maps one file of size bytes, all zero, at two places, as two processes do.
func Twice(tb testing.TB, size int64) (there, here []byte) {
	tb.Helper()
	fd, err := unix.MemfdCreate("ndbridge-test", unix.MFD_CLOEXEC)
	if err != nil {
		tb.Fatalf("memfd: %v", err)
	}
	f := os.NewFile(uintptr(fd), "ndbridge-test")
	defer func() { _ = f.Close() }() // the mappings outlive it
	if err := f.Truncate(size); err != nil {
		tb.Fatal(err)
	}
	there, _ = Map(tb, f, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	here, _ = Map(tb, f, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return there, here
}

// File makes a file of n bytes that all differ from their neighbours. Its name has a space.
func File(tb testing.TB, n int) *os.File {
	tb.Helper()
	f, err := os.Create(filepath.Join(tb.TempDir(), "array data.bin"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() }) // some tests have
	b := make([]byte, n)
	Fill(b)
	if _, err := f.Write(b); err != nil {
		tb.Fatal(err)
	}
	return f
}

// Map maps n bytes for one test: anonymous memory, or f's, and gives their address.
func Map(tb testing.TB, f *os.File, n, protection, flags int) ([]byte, uintptr) {
	tb.Helper()
	fd := -1
	if f == nil {
		flags |= unix.MAP_ANONYMOUS
	} else {
		fd = int(f.Fd())
	}
	b, err := unix.Mmap(fd, 0, n, protection, flags)
	if err != nil {
		tb.Fatalf("mmap: %v", err)
	}
	tb.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			tb.Errorf("munmap: %v", err)
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
