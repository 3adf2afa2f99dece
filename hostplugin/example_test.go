package hostplugin_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// open is the start of every example.
func open() (*hostplugin.Host, *hostplugin.Session) {
	cfg, err := hostplugin.Load("testdata/example/camera.hcl")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	host, err := hostplugin.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	camera, err := host.Start(context.Background(), "camera")
	if err != nil {
		log.Fatal(err)
	}
	return host, camera
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, err := hostplugin.Open(ctx, "testdata/example/camera.hcl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer host.Close()
	camera, err := host.Start(ctx, "camera")
	if err != nil {
		fmt.Println(err)
		return
	}
	frame, err := camera.View(ctx, "frame")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer frame.Close()
	pixels, err := core.Slice[int32](frame) // the pages that the program wrote
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(frame.DType(), frame.Shape(), pixels)
	// Output: int32 [3 4] [0 1 2 3 4 5 6 7 8 9 10 11]
}

func ExampleRun() {
	ctx := context.Background()
	camera, err := hostplugin.Run(ctx, hostplugin.Program{Script: "testdata/example/camera.py", Python: python()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer camera.Close()
	frame, err := camera.View(ctx, "frame")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer frame.Close()
	fmt.Println(core.At[int32](frame, 2, 3))
	// Output: 11 <nil>
}

// python is the interpreter of the examples; "" is python3.
func python() string { return os.Getenv("NDBRIDGE_TEST_PYTHON") }

func ExampleSession_View() {
	ctx := context.Background()
	host, camera := open()
	defer host.Close()
	frame, err := camera.View(ctx, "frame")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer frame.Close()
	crop, err := frame.Sub(1, 1, 3) // of every row, without a copy
	if err != nil {
		fmt.Println(err)
		return
	}
	defer crop.Close()
	rows, err := core.Rows[int32](crop)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		fmt.Println(row)
	}
	// Output:
	// [1 2]
	// [5 6]
	// [9 10]
}

// A name that the program has not published yet is waited for.
func ExampleSession_View_published() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, camera := open()
	defer host.Close()
	developed, err := camera.View(ctx, "developed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer developed.Close()
	last, err := core.At[int32](developed, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(last)
	// Output: 22
}

// A view is live, so it is taken once; Refresh tells when the name leads to another array.
func ExampleSource_Refresh() {
	ctx := context.Background()
	host, camera := open()
	defer host.Close()
	frames, err := camera.Source("frame")
	if err != nil {
		fmt.Println(err)
		return
	}
	var frame *core.View // closed with the host
	for row := range 3 {
		var changed bool
		if frame, changed, err = frames.Refresh(ctx, frame); err != nil {
			fmt.Println(err)
			return
		}
		first, err := core.At[int32](frame, row, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(first, changed)
	}
	// Output:
	// 0 true
	// 4 false
	// 8 false
}

func ExampleSession_Arrays() {
	ctx := context.Background()
	host, camera := open()
	defer host.Close()
	if err := camera.Wait(ctx); err != nil { // until the script has ended; its arrays stay
		fmt.Println(err)
		return
	}
	for array, err := range camera.Arrays(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(array.Name, array.Layout.DType(), array.Layout.Shape())
	}
	// Output:
	// calibration float32 [4]
	// developed int32 [3 4]
	// frame int32 [3 4]
}
