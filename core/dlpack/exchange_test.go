package dlpack_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// exchanges lays out a chain of DLPackExchangeAPI structs, 56 bytes each, as dlpack.h does. The export
// function of number i is at 0xe0 + i.
func exchanges(majors ...uint32) []byte {
	const size = 56
	b := make([]byte, size*len(majors))
	ne := binary.NativeEndian
	for i, major := range majors {
		s := b[size*i:]
		ne.PutUint32(s[0:], major)
		ne.PutUint32(s[4:], 3)
		if i+1 < len(majors) {
			ne.PutUint64(s[8:], base+uint64(size*(i+1)))
		}
		ne.PutUint64(s[16:], 0xbad)          // managed_tensor_allocator
		ne.PutUint64(s[24:], 0xe0+uint64(i)) // managed_tensor_from_py_object_no_sync
		ne.PutUint64(s[32:], 0xbad)
		ne.PutUint64(s[40:], 0xd0+uint64(i)) // dltensor_from_py_object_no_sync
	}
	return b
}

func TestExporter(t *testing.T) {
	t.Parallel()
	loop := exchanges(2)
	binary.NativeEndian.PutUint64(loop[8:], base)
	null := exchanges(1)
	binary.NativeEndian.PutUint64(null[24:], 0)
	for name, tt := range map[string]struct {
		image []byte
		addr  uintptr
		want  uintptr
		err   error
	}{
		"of version 1":        {exchanges(1), base, 0xe0, nil},
		"newer, and a 1":      {exchanges(3, 2, 1), base, 0xe2, nil},
		"newer only":          {exchanges(3, 2), base, 0, core.ErrVersion},
		"older only":          {exchanges(0), base, 0, core.ErrVersion},
		"a chain in a circle": {loop, base, 0, core.ErrVersion},
		"no function":         {null, base, 0, core.ErrPointer},
		"NULL":                {exchanges(1), 0, 0, core.ErrPointer},
		"odd address":         {exchanges(1), base + 4, 0, core.ErrPointer},
		"cut in its header":   {exchanges(1)[:15], base, 0, core.ErrPointer},
		"cut behind it":       {exchanges(1)[:31], base, 0, core.ErrPointer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := dlpack.Exporter(dlpack.Image(base, tt.image), tt.addr)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%#x, %v, want %#x, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestDescriber(t *testing.T) {
	t.Parallel()
	null := exchanges(1)
	binary.NativeEndian.PutUint64(null[40:], 0)
	for name, tt := range map[string]struct {
		image []byte
		want  uintptr
		err   error
	}{
		"of version 1":   {exchanges(1), 0xd0, nil},
		"newer, and a 1": {exchanges(2, 1), 0xd1, nil},
		"newer only":     {exchanges(2), 0, core.ErrVersion},
		"no function":    {null, 0, nil},
		"cut":            {exchanges(1)[:47], 0, core.ErrPointer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := dlpack.Describer(dlpack.Image(base, tt.image), base)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%#x, %v, want %#x, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
