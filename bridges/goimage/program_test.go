package goimage

import (
	"image"
	"image/color"
	"image/draw"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestProgram draws into an array of a Python program in OpenCV's order.
func TestProgram(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	program, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/frame.py", Python: python})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	frame, err := program.View(t.Context(), "frame", hostplugin.Writable(), hostplugin.NoCopy())
	if err != nil {
		t.Fatal(err)
	}
	defer frame.Close()
	m, err := New(coretest.Derive(t, frame, step(2, -1)))
	if err != nil {
		t.Fatal(err)
	}
	if m.At(0, 0) != (color.RGBA{30, 20, 10, 255}) {
		t.Errorf("the program's blue, green and red of 10, 20, 30 are %v", m.At(0, 0))
	}
	Draw(m, image.Rect(10, 20, 50, 60), image.NewUniform(color.RGBA{255, 0, 0, 255}), image.Point{}, draw.Src)
	found, err := program.Func(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	result, err := found.Call(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	var box [4]int
	if err := result.Decode(&box); err != nil || box != [4]int{10, 20, 50, 60} {
		t.Errorf("the program sees red in %v, %v", box, err)
	}
}
