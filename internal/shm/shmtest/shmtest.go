// Package shmtest makes memory for tests that are both sides of it.
package shmtest

import (
	"testing"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// Twice maps one sealed file of size bytes, all zero, at two places, as two processes do.
func Twice(tb testing.TB, size int64) (there, here []byte) {
	tb.Helper()
	f, err := shm.Create("ndbridge-test", size)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the mappings outlive it
	var maps [2][]byte
	for i := range maps {
		m, err := shm.Map(f, size, true)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := m.Close(); err != nil {
				tb.Error(err)
			}
		})
		maps[i] = m.Bytes()
	}
	return maps[0], maps[1]
}
