//go:build !linux

// Package shm is shared memory of Linux. Elsewhere its functions fail, so that hosts compile there.
package shm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

func none() error { return fmt.Errorf("shared memory on %s: %w", runtime.GOOS, errors.ErrUnsupported) }

// Create fails.
func Create(string, int64) (*os.File, error) { return nil, none() }

// Sealed fails.
func Sealed(*os.File) (bool, error) { return false, none() }

// ReadOnly fails.
func ReadOnly(*os.File) (*os.File, error) { return nil, none() }

// ReadWrite fails.
func ReadWrite(*os.File) (*os.File, error) { return nil, none() }

// Again fails.
func Again(int, int, bool) (*os.File, error) { return nil, none() }

// HugePages has no advice.
func HugePages() string { return "" }

// Separate fails.
func Separate(int) error { return none() }

// Admitted is none.
type Admitted struct{}

// Admit has nowhere to.
func Admit(int) (*Admitted, error) { return nil, nil } //nolint:nilnil // as on Linux

// Use does nothing.
func (*Admitted) Use(func(fd int)) {}

// Close does nothing.
func (*Admitted) Close() error { return nil }

// IsApart reports that there is no such place.
func IsApart(*os.File) bool { return false }

// Apart calls do.
func Apart(do func()) { do() }

// Use calls do.
func Use(_ *os.File, do func()) { do() }

// Close closes f.
func Close(f *os.File) error { return f.Close() }

// OpenPath fails.
func OpenPath(string, int) (*os.File, error) { return nil, none() }

// ReadFile reads a file.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// Sleep does not sleep.
func Sleep(*atomic.Uint32, uint32, time.Duration) {}

// Yield does nothing.
func Yield() {}

// Wake wakes nobody.
func Wake(*atomic.Uint32, int) {}

// Mapping does not exist.
type Mapping struct{}

// Map fails.
func Map(*os.File, int64, bool) (*Mapping, error) { return nil, none() }

// Replace fails.
func (*Mapping) Replace(int64, *os.File, int64, int64) error { return none() }

// Bytes gives no bytes.
func (*Mapping) Bytes() []byte { return nil }

// Addr gives no address.
func (*Mapping) Addr() uintptr { return 0 }

// Size gives no size.
func (*Mapping) Size() int64 { return 0 }

// Writable reports false.
func (*Mapping) Writable() bool { return false }

// Close fails.
func (*Mapping) Close() error { return none() }
