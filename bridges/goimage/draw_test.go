package goimage

import (
	"image"
	"image/color"
	"image/draw"
	"math/rand/v2"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// slow hides what a picture is from the fast ways.
type slow struct{ draw.RGBA64Image }

// TestDrawIsDraw compares the fast ways with those of package draw, point by point.
func TestDrawIsDraw(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	fill := func(b []byte) {
		for i := range b {
			b[i] = uint8(random.Uint32())
		}
	}
	overlay := image.NewRGBA(image.Rect(-3, -2, 9, 11))
	for y := -2; y < 11; y++ {
		for x := -3; x < 9; x++ {
			overlay.Set(x, y, color.NRGBA{uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32N(4) * 85)})
		}
	}
	layouts := map[string][]func(*core.View) (*core.View, error){
		"rgb": nil, "bgr": {step(2, -1)}, "mirrored": {step(1, -1), step(0, -1)}, "crop": {sub(0, 1, 7), sub(1, 2, 7)}, "sparse": {step(1, 2)},
	}
	rects := []image.Rectangle{image.Rect(0, 0, 8, 9), image.Rect(2, 3, 5, 5), image.Rect(-4, -4, 20, 20), image.Rect(6, 6, 6, 9), image.Rect(30, 30, 40, 40)}
	for name, derivations := range layouts {
		data, same := make([]uint8, 9*8*3), make([]uint8, 9*8*3)
		fill(data)
		copy(same, data)
		m := picture(t, coretest.NewView(t, data, 9, 8, 3), derivations...)
		want := picture(t, coretest.NewView(t, same, 9, 8, 3), derivations...)
		for i, r := range rects {
			for _, op := range []draw.Op{draw.Src, draw.Over} {
				for _, src := range []image.Image{overlay, image.NewUniform(color.NRGBA{1, 200, 3, 255}), image.NewUniform(color.NRGBA{9, 8, 255, 100})} {
					sp := image.Pt(i-1, 1)
					Draw(m, r, src, sp, op)
					draw.Draw(slow{want}, r, src, sp, op)
					equal(t, name, m, want)
				}
				out, wantOut := image.NewRGBA(image.Rect(-1, -1, 10, 10)), image.NewRGBA(image.Rect(-1, -1, 10, 10))
				fill(out.Pix)
				copy(wantOut.Pix, out.Pix)
				Draw(out, r, m, image.Pt(1-i, 0), op)
				draw.Draw(wantOut, r, slow{m}, image.Pt(1-i, 0), op)
				equal(t, name, out, wantOut)
			}
		}
	}
}

func picture(t *testing.T, v *core.View, derivations ...func(*core.View) (*core.View, error)) *Image {
	t.Helper()
	m, err := New(coretest.Derive(t, v, derivations...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func equal(t *testing.T, name string, got, want image.Image) {
	t.Helper()
	for y := got.Bounds().Min.Y; y < got.Bounds().Max.Y; y++ {
		for x := got.Bounds().Min.X; x < got.Bounds().Max.X; x++ {
			if got.At(x, y) != want.At(x, y) {
				t.Fatalf("%s: (%d,%d) is %v, want %v", name, x, y, got.At(x, y), want.At(x, y))
			}
		}
	}
}

func TestDrawingAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	m := picture(t, coretest.NewView(t, make([]uint8, 40*30*3), 30, 40, 3))
	overlay, red := image.NewRGBA(image.Rect(0, 0, 40, 30)), image.NewUniform(color.RGBA{255, 0, 0, 255})
	if n := testing.AllocsPerRun(10, func() {
		Draw(m, m.Bounds(), red, image.Point{}, draw.Src)
		Draw(m, m.Bounds(), overlay, image.Point{}, draw.Over)
		Draw(overlay, m.Bounds(), m, image.Point{}, draw.Src)
		m.SetRGBA64(1, 1, m.RGBA64At(2, 2))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDraw(b *testing.B) {
	v := coretest.NewView(b, make([]uint8, 480*640*3), 480, 640, 3)
	defer v.Close()
	m, err := New(v)
	if err != nil {
		b.Fatal(err)
	}
	out := image.NewRGBA(m.Bounds())
	b.Run("fast", func(b *testing.B) {
		b.SetBytes(480 * 640 * 3)
		for b.Loop() {
			Draw(out, m.Bounds(), m, image.Point{}, draw.Src)
		}
	})
	b.Run("by package draw", func(b *testing.B) {
		b.SetBytes(480 * 640 * 3)
		for b.Loop() {
			draw.Draw(out, m.Bounds(), m, image.Point{}, draw.Src)
		}
	})
}
