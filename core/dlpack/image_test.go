package dlpack_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core/dlpack"
)

// base is where images stand.
const base = 0x10000

// A capsule describes a managed tensor for a test. The zero value of each field is the usual one.
type capsule struct {
	versioned    bool
	major, minor uint32
	context      uint64
	deleter      uint64
	flags        uint64

	data       uint64
	deviceType int32
	deviceID   int32
	rank       int32
	code, bits uint8
	lanes      uint16
	shape      []int64
	strides    []int64
	byteOffset uint64

	shapeAt, stridesAt uint64 // pointers other than the right ones
}

// f32 is a row-major array of float32 in host memory.
func f32(shape ...int64) capsule {
	return capsule{
		versioned: true, major: 1, minor: 3, deleter: 0xdead0, context: 0xc0, data: 0x7f0000001000,
		deviceType: 1, rank: int32(len(shape)), code: 2, bits: 32, lanes: 1, shape: shape,
	}
}

// image lays the capsule out as dlpack.h does, with offsets written down here once more: strides and
// shape follow the struct.
func (c capsule) image() []byte {
	size := 64
	if c.versioned {
		size = 80
	}
	b := make([]byte, size)
	ne := binary.NativeEndian
	tensor := b
	if c.versioned {
		ne.PutUint32(b[0:], c.major)
		ne.PutUint32(b[4:], c.minor)
		ne.PutUint64(b[8:], c.context)
		ne.PutUint64(b[16:], c.deleter)
		ne.PutUint64(b[24:], c.flags)
		tensor = b[32:]
	} else {
		ne.PutUint64(b[48:], c.context)
		ne.PutUint64(b[56:], c.deleter)
	}
	ne.PutUint64(tensor[0:], c.data)
	ne.PutUint32(tensor[8:], uint32(c.deviceType))
	ne.PutUint32(tensor[12:], uint32(c.deviceID))
	ne.PutUint32(tensor[16:], uint32(c.rank))
	tensor[20], tensor[21] = c.code, c.bits
	ne.PutUint16(tensor[22:], c.lanes)
	pointers := [2]uint64{c.shapeAt, c.stridesAt}
	tail := []byte{}
	for i, words := range [][]int64{c.shape, c.strides} {
		if words != nil && pointers[i] == 0 {
			pointers[i] = base + uint64(size+len(tail))
		}
		for _, w := range words {
			tail = ne.AppendUint64(tail, uint64(w))
		}
	}
	ne.PutUint64(tensor[24:], pointers[0])
	ne.PutUint64(tensor[32:], pointers[1])
	ne.PutUint64(tensor[40:], c.byteOffset)
	return slices.Concat(b, tail)
}

func (c capsule) kind() dlpack.Kind {
	if c.versioned {
		return dlpack.Versioned
	}
	return dlpack.Legacy
}

// inspect reads the fixed part, which is there whatever the rest is like.
func (c capsule) inspect(t *testing.T) dlpack.Managed {
	t.Helper()
	m, err := dlpack.Inspect(dlpack.Image(base, c.image()), base, c.kind())
	if err != nil {
		t.Fatal(err)
	}
	if m.Deleter != uintptr(c.deleter) || m.Context != uintptr(c.context) || m.Addr != base || m.Kind != c.kind() {
		t.Errorf("%+v of %+v", m, c)
	}
	return m
}

// with changes a copy.
func (c capsule) with(change func(*capsule)) capsule {
	c.shape, c.strides = slices.Clone(c.shape), slices.Clone(c.strides)
	change(&c)
	return c
}
