package safetensors_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/ndbridge/ndbridge/bridges/safetensors"
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
	if err := safetensors.Write(context.Background(), &file, maps.All(map[string]*core.View{"weight": v}), nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", file.Bytes()[8:file.Len()-24])
	// Output: {"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
}
