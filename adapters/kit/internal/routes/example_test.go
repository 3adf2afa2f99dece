package routes_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// layoutOf describes rows of three float32 elements.
func layoutOf(rows int) core.Layout {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{rows, 3}})
	if err != nil {
		panic(err)
	}
	return l
}

// An array in ordinary memory can only cross as a copy. The placement says so, and why.
func ExampleRouter_Put() {
	router := routes.NewRouter(nil) // no shared heap
	defer router.Close()
	data := binary.NativeEndian.AppendUint64(nil, 7)
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint64})
	if err != nil {
		fmt.Println(err)
		return
	}
	place, err := router.Put(data, l, contract.ReasonConverted)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(place.Route, place.Reason, place.Memory.Parts[0].Size() >= 8)
	fmt.Println(place.GiveUp()) // no lease was made of it
	// Output:
	// staged converted true
	// <nil>
}

// A pointer that leads nowhere is an error, and no fault.
func ExampleRouter_Share() {
	router := routes.NewRouter(nil)
	defer router.Close()
	nowhere := routes.Array{Addr: 1 << 12, Layout: layoutOf(2)} // nothing is mapped at the lowest addresses
	_, _, err := router.Share(nowhere, routes.Want{})
	fmt.Println(errors.Is(err, core.ErrPointer))
	// Output: true
}

// Arrays without elements need no memory.
func ExampleRouter_Share_empty() {
	router := routes.NewRouter(nil)
	defer router.Close()
	place, _, err := router.Share(routes.Array{Layout: layoutOf(0)}, routes.Want{})
	fmt.Println(place.Route, len(place.Memory.Parts), err)
	// Output: empty 0 <nil>
}

// Inside tells whether an array's elements lie in a piece of memory, wherever its first element is.
func ExampleArray_Inside() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{4}, Strides: []int{-1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := routes.Array{Addr: 103, Layout: l} // its elements lie at 103, 102, 101 and 100
	fmt.Println(a.Inside(100, 4), a.Inside(101, 4))
	// Output: true false
}
