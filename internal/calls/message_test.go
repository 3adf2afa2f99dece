package calls

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// counting counts the layouts that it has read.
type counting struct {
	plain
	read int
}

func (c *counting) Layout(b []byte) (core.Layout, error) {
	c.read++
	return c.plain.Layout(b)
}

// TestLayoutsAreReadOnce: what is the same as in the request before is known.
func TestLayoutsAreReadOnce(t *testing.T) {
	t.Parallel()
	var codec counting
	var parsed Request
	for i, step := range []struct {
		sizes []int // of the arrays
		read  int   // so many layouts more
	}{{[]int{4, 8}, 2}, {[]int{4, 8}, 0}, {[]int{8, 8}, 1}, {nil, 0}, {[]int{8}, 1}, {[]int{8, 0, 4}, 2}, {[]int{8, 0, 4}, 0}} {
		r := Request{Op: OpCall, Number: uint64(i + 1)}
		for _, size := range step.sizes {
			l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{size}})
			if err != nil {
				t.Fatal(err)
			}
			r.Arrays = append(r.Arrays, Argument{Layout: l, Word: uint32(i)})
		}
		message, err := r.Append(nil, &codec)
		if err != nil {
			t.Fatal(err)
		}
		codec.read = 0
		if err := parsed.Parse(message, &codec); err != nil {
			t.Fatal(err)
		}
		clear(message) // which is not the request's
		var sizes []int
		for _, a := range parsed.Arrays {
			sizes = append(sizes, a.Layout.Len())
			if a.Word != uint32(i) {
				t.Errorf("step %d: the word of before", i)
			}
		}
		if !slices.Equal(sizes, step.sizes) || codec.read != step.read {
			t.Errorf("step %d: arrays of %v bytes, of which %d were read; want %v, %d", i, sizes, codec.read, step.sizes, step.read)
		}
	}
}
