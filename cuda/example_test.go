package cuda_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/cuda"
)

// A host that can do without a GPU asks first. The error states the reason and the remedy.
func ExampleAvailable() {
	switch err := cuda.Available(); {
	case err == nil: // kernels can run
	case errors.Is(err, core.ErrUnsupported): // built without CUDA, or no driver, or no device
	case errors.Is(err, core.ErrVersion): // an old driver
	default:
		fmt.Println(err)
	}
	fmt.Println("the host starts")
	// Output: the host starts
}

// A host chooses the device with the most memory, and knows when there is none.
func ExampleDevices() {
	best := cuda.DeviceInfo{Index: -1}
	devices, err := cuda.Devices()
	for _, d := range devices {
		if d.Memory > best.Memory {
			best = d
		}
	}
	fmt.Println("a device was chosen, or an error says why not:", best.Index >= 0 != (err != nil))
	// Output: a device was chosen, or an error says why not: true
}

// A device that does not exist is core.ErrDevice; a process without CUDA has none at all.
func ExampleNewStream() {
	stream, err := cuda.NewStream(1 << 20)
	fmt.Println(stream == nil, errors.Is(err, core.ErrDevice) || cuda.Available() != nil)
	// Output: true true
}

// One thread for each element: the grid covers all of them, and the kernel checks the bound.
func ExampleLaunchConfig() {
	const elements, threads = 1_000_000, 256
	config := cuda.LaunchConfig{
		Grid:  cuda.Dim3{(elements + threads - 1) / threads},
		Block: cuda.Dim3{threads},
	}
	fmt.Println(config.Grid[0], "blocks of", config.Block[0], "threads")
	// Output: 3907 blocks of 256 threads
}

// Tiles of 16 x 16 threads cover an image.
func ExampleDim3() {
	const width, height, tile = 1920, 1080, 16
	grid := cuda.Dim3{(width + tile - 1) / tile, (height + tile - 1) / tile}
	fmt.Println(grid[0], "x", grid[1], "tiles")
	// Output: 120 x 68 tiles
}

// A host pins an array in host memory for kernels if it can. The CPU reads it either way.
func ExamplePin() {
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := core.NewView(layout, coretest.NewMemory([]float32{1, 2, 3}), &core.ViewOptions{Writable: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer view.Close()

	unpin, err := cuda.Pin(0, view)
	switch {
	case err == nil:
		defer func() { _ = unpin() }() // after the work that uses the memory
	case cuda.Available() == nil: // there is CUDA, so this is a defect
		fmt.Println(err)
	}
	fmt.Println(core.Slice[float32](view))
	// Output: [1 2 3] <nil>
}

// A host doubles a view in place. The kernel waits for the program's work on the view.
func ExampleFunction_Launch() { //nolint:testableexamples // it needs a GPU
	double := func(ctx context.Context, view *core.View, ptx []byte) (err error) {
		device := view.Device().Index
		stream, err := cuda.NewStream(device)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stream.Close()) }()
		module, err := cuda.LoadModule(ctx, device, ptx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, module.Close()) }()
		scale, err := module.Function(ctx, "scale") // scale(float *data, float factor, uint64_t n)
		if err != nil {
			return err
		}
		config := cuda.LaunchConfig{Grid: cuda.Dim3{64}, Block: cuda.Dim3{256}}
		if err := scale.Launch(stream, config, view, float32(2), uint64(view.Len())); err != nil {
			return err
		}
		return stream.Synchronize(ctx)
	}
	_ = double
}
