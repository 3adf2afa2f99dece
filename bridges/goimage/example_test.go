package goimage_test

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"github.com/ndbridge/ndbridge/bridges/goimage"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func Example() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 3, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers := make([]uint8, 18) // in place of a program's frame: 2 rows of 3 points, blue, green, red
	v, err := core.NewView(l, coretest.NewMemory(numbers), &core.ViewOptions{Writable: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	rgb, err := v.Step(2, -1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rgb.Close()
	picture, err := goimage.New(rgb)
	if err != nil {
		fmt.Println(err)
		return
	}
	goimage.Draw(picture, image.Rect(1, 0, 2, 2), image.NewUniform(color.RGBA{R: 255, G: 128, A: 255}), image.Point{}, draw.Src)
	fmt.Printf("%d\n", numbers)
	// Output: [0 0 0 0 128 255 0 0 0 0 0 0 0 128 255 0 0 0]
}
