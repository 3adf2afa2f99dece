// Command camera finds what moves in the frames of a Python program, and draws into them where they are. The README beside this file
// says how to run it.
package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"log"
	"os"

	"github.com/ndbridge/ndbridge/bridges/goimage"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// frames is how many the program shoots.
const frames = 10

func main() {
	if err := run(context.Background(), os.Stdout, hostplugin.Program{Script: "camera.py"}, frames); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, program hostplugin.Program, frames int) error {
	camera, err := hostplugin.Run(ctx, program)
	if err != nil {
		return err
	}
	defer camera.Close() //nolint:errcheck // what failed was returned before
	frame, err := camera.View(ctx, "frame", hostplugin.Writable(), hostplugin.NoCopy())
	if err != nil {
		return err
	}
	rgb, err := frame.Step(2, -1) // OpenCV's order is blue, green, red
	if err != nil {
		return err
	}
	picture, err := goimage.New(rgb) // the program's own array
	if err != nil {
		return err
	}
	find := func(context.Context, hostplugin.Args) (any, error) { return detect(picture), nil }
	if err := camera.Handle("detect", find); err != nil { //nolint:contextcheck // each call brings its own
		return err
	}
	loop, err := camera.Func(ctx, "run")
	if err != nil {
		return err
	}
	result, err := loop.Call(ctx, frames)
	if err != nil {
		return err
	}
	defer result.Close() //nolint:errcheck // the session says what failed
	var found struct {
		Right int `python:"right"`
		Wrong int `python:"wrong"`
	}
	if err := result.Decode(&found); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d frames: %d balls where they are, %d elsewhere\n", frames, found.Right, found.Wrong)
	return err
}

// detect finds the balls in a picture, draws boxes around them, and gives the boxes: left, top, right, bottom.
func detect(picture *goimage.Image) (boxes [][4]int) {
	green := image.NewUniform(color.RGBA{G: 255, A: 255})
	for _, box := range balls(picture) {
		for _, side := range []image.Rectangle{
			{box.Min, image.Pt(box.Max.X, box.Min.Y+1)},
			{image.Pt(box.Min.X, box.Max.Y-1), box.Max},
			{box.Min, image.Pt(box.Min.X+1, box.Max.Y)},
			{image.Pt(box.Max.X-1, box.Min.Y), box.Max},
		} {
			goimage.Draw(picture, side, green, image.Point{}, draw.Src)
		}
		boxes = append(boxes, [4]int{box.Min.X, box.Min.Y, box.Max.X, box.Max.Y})
	}
	return boxes
}

// balls gives a box around each patch of red, in the order of their first rows.
func balls(picture *goimage.Image) (boxes []image.Rectangle) {
	const least = 50 // points; a smaller patch is noise
	bounds := picture.Bounds()
	seen := make([]bool, bounds.Dx()*bounds.Dy())
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			var box image.Rectangle
			points := 0
			for next := []image.Point{{X: x, Y: y}}; len(next) > 0; {
				p := next[len(next)-1]
				next = next[:len(next)-1]
				if !p.In(bounds) || seen[p.Y*bounds.Dx()+p.X] || !red(picture, p) {
					continue
				}
				seen[p.Y*bounds.Dx()+p.X] = true
				points++
				box = box.Union(image.Rectangle{Min: p, Max: p.Add(image.Pt(1, 1))})
				next = append(next, p.Add(image.Pt(1, 0)), p.Add(image.Pt(-1, 0)), p.Add(image.Pt(0, 1)), p.Add(image.Pt(0, -1)))
			}
			if points >= least {
				boxes = append(boxes, box)
			}
		}
	}
	return boxes
}

func red(picture *goimage.Image, p image.Point) bool {
	c := picture.RGBA64At(p.X, p.Y)
	return c.R > 180<<8 && c.G < 100<<8
}
