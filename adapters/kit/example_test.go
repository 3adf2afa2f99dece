package kit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/ndbridge/ndbridge/adapters/kit"
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

// tempFile makes a file that is gone when it is closed.
func tempFile() (*os.File, error) {
	file, err := os.CreateTemp("", "array")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// An array in ordinary memory can only cross as a copy. The placement says so, and why.
func ExampleRouter_Put() {
	router := kit.NewRouter(nil) // no shared heap
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
	router := kit.NewRouter(nil)
	defer router.Close()
	nowhere := kit.Array{Addr: 1 << 12, Layout: layoutOf(2)} // nothing is mapped at the lowest addresses
	_, _, err := router.Share(nowhere, kit.Want{})
	fmt.Println(errors.Is(err, core.ErrPointer))
	// Output: true
}

// Arrays without elements need no memory.
func ExampleRouter_Place() {
	router := kit.NewRouter(nil)
	defer router.Close()
	place, err := router.Place(context.Background(), kit.Array{Layout: layoutOf(0)}, kit.Want{})
	fmt.Println(place.Route, len(place.Memory.Parts), err)
	// Output: empty 0 <nil>
}

// A producer whose arrays lie in files needs no router: it leases segments of the files.
func ExampleFileSegment() {
	file, err := tempFile()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	if err := file.Truncate(24); err != nil {
		fmt.Println(err)
		return
	}
	segment, err := kit.FileSegment(file) // it has a descriptor of its own
	if err != nil {
		fmt.Println(err)
		return
	}
	var leases kit.Leases
	lease, err := leases.Grant(contract.Lease{Layout: layoutOf(2), Route: contract.RouteMappedFile}, segment, func() { fmt.Println("dropped") })
	if err != nil {
		fmt.Println(err)
		return
	}
	handle, _ := lease.Handle.(contract.Segment)
	fmt.Println(handle.Size, leases.Len())
	fmt.Println(leases.Release(context.Background(), lease.ID), leases.Len())
	// Output:
	// 24 1
	// dropped
	// <nil> 0
}

// Leases tells one segment from the next: two leases on one file stand on the same memory, which the host maps once.
func ExampleLeases_Grant() {
	file, err := tempFile()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	if err := file.Truncate(48); err != nil {
		fmt.Println(err)
		return
	}
	var leases kit.Leases
	var ids []contract.LeaseID
	var segments []contract.SegmentID
	for range 2 {
		segment, err := kit.FileSegment(file)
		if err != nil {
			fmt.Println(err)
			return
		}
		lease, err := leases.Grant(contract.Lease{Layout: layoutOf(4), Route: contract.RouteMappedFile}, segment, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		handle, _ := lease.Handle.(contract.Segment)
		ids, segments = append(ids, lease.ID), append(segments, handle.ID)
	}
	fmt.Println(ids[0] != ids[1], segments[0] == segments[1])
	fmt.Println(leases.Release(context.Background(), ids...))
	// Output:
	// true true
	// <nil>
}

// Inside tells whether an array's elements lie in a piece of memory, wherever its first element is.
func ExampleArray_Inside() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{4}, Strides: []int{-1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := kit.Array{Addr: 103, Layout: l} // its elements lie at 103, 102, 101 and 100
	fmt.Println(a.Inside(100, 4), a.Inside(101, 4))
	// Output: true false
}
