package kit_test

import (
	"context"
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
	lease, err := leases.Grant(contract.Lease{Layout: layoutOf(2), Route: contract.RouteMappedFile}, kit.HostMemory(segment), func() { fmt.Println("dropped") })
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
		lease, err := leases.Grant(contract.Lease{Layout: layoutOf(4), Route: contract.RouteMappedFile}, kit.HostMemory(segment), nil)
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
