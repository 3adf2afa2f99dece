package dlpack_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// FuzzDLPack reads any bytes as a capsule's struct. Whatever they say, the reader must not leave them,
// and what it accepts must be sound.
func FuzzDLPack(f *testing.F) {
	for _, c := range []capsule{
		f32(2, 3), f32(), f32(0, 3), f32(ones(64)...),
		f32(2, 3).with(func(c *capsule) { c.strides = []int64{-3, 1} }),
		f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.flags = 0, 4, 4 }),
		f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.strides = 17, 4, []int64{3, 1} }),
		f32(2).with(func(c *capsule) { c.major = 2 }),
	} {
		f.Add(c.image(), true)
		c.versioned = false
		f.Add(c.image(), false)
	}
	f.Fuzz(func(t *testing.T, image []byte, versioned bool) {
		kind := dlpack.Legacy
		if versioned {
			kind = dlpack.Versioned
		}
		m, err := dlpack.Inspect(dlpack.Image(base, image), base, kind)
		if err != nil {
			if len(image) >= 64 {
				t.Fatal("the deleter is lost:", err)
			}
			return
		}
		tensor, err := m.Tensor()
		if err != nil {
			if core.Category(err) == "" {
				t.Fatalf("error without a category: %v", err)
			}
			return
		}
		spec := tensor.Spec
		l, err := core.NewLayout(spec)
		if err != nil {
			return
		}
		if l.Len() > 0 && tensor.Addr == 0 {
			t.Fatalf("%v at NULL", l)
		}
		if spec.Offset != 0 || len(spec.Shape) > core.MaxRank || versioned && m.Major != dlpack.Major {
			t.Fatalf("%+v of %+v", spec, m)
		}
	})
}
