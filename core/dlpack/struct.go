package dlpack

import (
	"encoding/binary"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// Offsets in bytes of the fields of DLTensor.
const (
	tensorData       = 0
	tensorDeviceType = 8
	tensorDeviceID   = 12
	tensorNDim       = 16
	tensorCode       = 20
	tensorBits       = 21
	tensorLanes      = 22
	tensorShape      = 24
	tensorStrides    = 32
	tensorByteOffset = 40
	tensorSize       = 48
)

// Offsets in bytes of the fields of DLManagedTensor.
const (
	legacyTensor  = 0
	legacyContext = 48
	legacyDeleter = 56
	legacySize    = 64
)

// Offsets in bytes of the fields of DLManagedTensorVersioned. The first three never move, whatever the
// version.
const (
	versionedMajor   = 0
	versionedMinor   = 4
	versionedContext = 8
	versionedDeleter = 16
	versionedFixed   = 24 // the end of what never moves
	versionedFlags   = 24
	versionedTensor  = 32
	versionedSize    = 80
)

// The flags of DLManagedTensorVersioned.
const (
	flagReadOnly = 1 << iota
	flagCopied
	flagPadded
)

const structAlign = 8

// Managed is the part of a managed tensor that is the same in all versions. It is enough to give the tensor back.
type Managed struct {
	Addr         uintptr // of the struct: the one argument of the deleter
	Kind         Kind
	Major, Minor uint32  // of a Versioned tensor; 0.0 of a Legacy one
	Context      uintptr // the producer's own
	// Deleter is the address of the function void(*)(struct *) that gives the tensor back, or 0 if
	// nothing is to be called. It is called once, from any thread.
	Deleter uintptr

	mem Memory
}

// Inspect reads the part of the struct at addr that is the same in all versions. It fails only if there is no struct to
// read: at NULL and at an address that is not aligned (core.ErrPointer).
func Inspect(mem Memory, addr uintptr, kind Kind) (Managed, error) {
	m := Managed{Addr: addr, Kind: kind, mem: mem}
	size, context, deleter := legacySize, legacyContext, legacyDeleter
	switch kind {
	case Legacy:
	case Versioned:
		size, context, deleter = versionedFixed, versionedContext, versionedDeleter
	default:
		return Managed{}, pointerError("kind %d of capsule", kind)
	}
	b, err := readAligned(mem, addr, size)
	if err != nil {
		return Managed{}, err
	}
	if kind == Versioned {
		m.Major, m.Minor = word32(b[versionedMajor:]), word32(b[versionedMinor:])
	}
	m.Context, m.Deleter = uintptr(word64(b[context:])), uintptr(word64(b[deleter:]))
	return m, nil
}

// readAligned reads a struct or an array of 64-bit words.
func readAligned(mem Memory, addr uintptr, n int) ([]byte, error) {
	if addr%structAlign != 0 {
		return nil, pointerError("address %#x is not a multiple of %d", addr, structAlign)
	}
	return mem(addr, n)
}

func word32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

func word64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

func pointerError(format string, args ...any) error {
	return dlpackError(core.ErrPointer, format, args...)
}

func dlpackError(kind error, format string, args ...any) error {
	return &core.Error{Op: "dlpack", Kind: kind, Err: fmt.Errorf(format, args...)}
}
