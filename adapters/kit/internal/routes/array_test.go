package routes

import (
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestInside: elements before and behind the first one count, and no sum overflows.
func TestInside(t *testing.T) {
	t.Parallel()
	forwards := layout(t, core.LayoutSpec{DType: core.Int32, Shape: []int{10}})
	backwards := layout(t, core.LayoutSpec{DType: core.Int32, Shape: []int{10}, Strides: []int{-4}})
	for name, tt := range map[string]struct {
		array      Array
		addr, size uint64
		want       bool
	}{
		"all of it":               {Array{1000, forwards}, 1000, 40, true},
		"in the middle":           {Array{1000, forwards}, 900, 200, true},
		"a byte too short":        {Array{1000, forwards}, 1000, 39, false},
		"a byte too late":         {Array{1000, forwards}, 1001, 100, false},
		"behind it":               {Array{1000, forwards}, 100, 900, false},
		"beyond it":               {Array{1000, forwards}, 100, 800, false},
		"backwards":               {Array{1036, backwards}, 1000, 40, true},
		"backwards, too far":      {Array{1035, backwards}, 1000, 40, false},
		"backwards, below zero":   {Array{35, backwards}, 0, math.MaxUint64, false},
		"to the end of all":       {Array{1000, forwards}, 0, math.MaxUint64, true},
		"nothing":                 {Array{1000, forwards}, 0, 0, false},
		"at the end of addresses": {Array{math.MaxUint64 - 8, forwards}, 0, math.MaxUint64, false},
	} {
		if got := tt.array.Inside(tt.addr, tt.size); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
