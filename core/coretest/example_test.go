package coretest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// exampleTB stands for the *testing.T of a test.
type exampleTB struct {
	testing.TB
	dir string
}

func (exampleTB) Helper()           {}
func (e exampleTB) TempDir() string { return e.dir }

// A fake producer lends arrays as a plugin does, without another process.
func ExampleNewProducer() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := exampleTB{dir: dir} // in a test: its t

	ctx := context.Background()
	p := coretest.NewProducer(t, coretest.Array{
		Name: "frame", DType: core.Uint8, Shape: []int{2, 2}, Data: []byte{1, 2, 3, 4},
	})
	for entry, err := range p.Arrays(ctx) {
		fmt.Println(entry.Name, entry.Layout, err)
	}
	lease, err := p.Lease(ctx, "frame", contract.Request{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Route, lease.Layout.NBytes(), p.Release(ctx, lease.ID))
	_, err = p.Lease(ctx, "farme", contract.Request{NoWait: true})
	fmt.Println(core.Category(err))
	// Output:
	// frame uint8[2 2] <nil>
	// mapped-file 4 <nil>
	// not found
}

// Leaks finds the views that were forgotten, and where they were made.
func ExampleLeaks() {
	leaks := coretest.Leaks()
	func() {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{3}})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = core.NewView(l, coretest.NewMemory([]uint8{1, 2, 3}), &core.ViewOptions{Name: "frame"})
		if err != nil {
			fmt.Println(err)
		}
	}() // nobody has the view any more, and nobody closed it
	for _, leak := range leaks() {
		fmt.Println(leak.Name, leak.Size)
	}
	// Output: frame 3
}
