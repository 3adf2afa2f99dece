package npy_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ndbridge/ndbridge/bridges/npy"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func Example() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := core.NewView(l, coretest.NewMemory(make([]float32, 6)), nil) // in place of a program's array
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	var file bytes.Buffer
	if _, err := npy.Write(context.Background(), &file, v); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, and %d bytes in all\n", bytes.TrimSpace(file.Bytes()[10:file.Len()-24]), file.Len())
	// Output: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and 152 bytes in all
}
