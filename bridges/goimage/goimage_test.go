package goimage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m) }

// count is 0, 1, 2 and so on, in steps.
func count[T uint8 | uint16](n int, step T) []T {
	data := make([]T, n)
	for i := range data {
		data[i] = T(i) * step
	}
	return data
}

func sub(axis, lo, hi int) func(*core.View) (*core.View, error) {
	return func(v *core.View) (*core.View, error) { return v.Sub(axis, lo, hi) }
}

func step(axis, n int) func(*core.View) (*core.View, error) {
	return func(v *core.View) (*core.View, error) { return v.Step(axis, n) }
}

func transpose(perm ...int) func(*core.View) (*core.View, error) {
	return func(v *core.View) (*core.View, error) { return v.Transpose(perm...) }
}

func TestGrayIsTheMemory(t *testing.T) {
	t.Parallel()
	data := count[uint8](20, 1)
	crop := coretest.Derive(t, coretest.NewView(t, data, 4, 5), sub(0, 1, 4), sub(1, 1, 3))
	g, err := Gray(crop)
	if err != nil {
		t.Fatal(err)
	}
	if g.Bounds() != image.Rect(0, 0, 2, 3) {
		t.Fatalf("%v", g.Bounds())
	}
	g.SetGray(1, 2, color.Gray{Y: 200})
	data[6] = 100
	if data[17] != 200 || g.GrayAt(0, 0).Y != 100 {
		t.Errorf("data[17] = %d, (0,0) = %v", data[17], g.GrayAt(0, 0))
	}
}

func TestFourChannelsAreTheMemory(t *testing.T) {
	t.Parallel()
	data := count[uint8](2*3*4, 10)
	v := coretest.Derive(t, coretest.NewView(t, data, 2, 3, 4))
	n, err := NRGBA(v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := RGBA(v)
	if err != nil {
		t.Fatal(err)
	}
	n.SetNRGBA(2, 1, color.NRGBA{1, 2, 3, 4})
	if !bytes.Equal(data[20:], []byte{1, 2, 3, 4}) || r.RGBAAt(2, 1) != (color.RGBA{1, 2, 3, 4}) {
		t.Errorf("%v, %v", data[20:], r.RGBAAt(2, 1))
	}
}

func TestGray16IsBigEndian(t *testing.T) {
	t.Parallel()
	big, err := core.Opaque(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: big, Tag: ">u2", Shape: []int{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte{0x12, 0x34, 0, 1, 0, 2, 0, 3}
	v, err := core.NewView(l, coretest.NewMemory(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	g, err := Gray16(v)
	if err != nil {
		t.Fatal(err)
	}
	if g.Gray16At(0, 0).Y != 0x1234 || &g.Pix[0] != &data[0] {
		t.Errorf("%v", g.Gray16At(0, 0))
	}
	if _, err := New(v); !errors.Is(err, core.ErrDType) || !strings.Contains(err.Error(), "use Gray16") {
		t.Errorf("%v", err)
	}
	native := coretest.Derive(t, coretest.NewView(t, count[uint16](4, 1000), 2, 2))
	if _, err := Gray16(native); !errors.Is(err, core.ErrDType) {
		t.Errorf("Gray16 in the order of this machine: %v", err)
	}
	m, err := New(native)
	if err != nil {
		t.Fatal(err)
	}
	if c := m.At(1, 1); c != (color.Gray16{Y: 3000}) {
		t.Errorf("%v", c)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	bytes := func(shape ...int) *core.View { return coretest.NewView(t, count[uint8](24, 3), shape...) }
	cases := map[string]struct {
		view *core.View
		want image.Image
	}{
		"plane":             {coretest.Derive(t, bytes(4, 6)), &image.Gray{}},
		"one channel":       {coretest.Derive(t, bytes(4, 6, 1)), &image.Gray{}},
		"mirrored":          {coretest.Derive(t, bytes(4, 6), step(1, -1)), &Image{}},
		"upside down":       {coretest.Derive(t, bytes(4, 6), step(0, -1)), &Image{}},
		"every other point": {coretest.Derive(t, bytes(4, 6), step(1, 2)), &Image{}},
		"every other row":   {coretest.Derive(t, bytes(4, 6), step(0, 2)), &image.Gray{}},
		"one point wide":    {coretest.Derive(t, bytes(4, 6), sub(1, 2, 3), step(1, -1)), &image.Gray{}},
		"one point high":    {coretest.Derive(t, bytes(4, 6), sub(0, 2, 3), step(0, -1)), &image.Gray{}},
		"transposed":        {coretest.Derive(t, bytes(4, 6), transpose()), &Image{}},
		"four channels":     {coretest.Derive(t, bytes(2, 3, 4)), &image.NRGBA{}},
		"three channels":    {coretest.Derive(t, bytes(2, 4, 3)), &Image{}},
		"channels first":    {coretest.Derive(t, bytes(3, 2, 4), transpose(1, 2, 0)), &Image{}},
		"BGRA":              {coretest.Derive(t, bytes(2, 3, 4), step(2, -1)), &Image{}},
		"16 bits":           {coretest.Derive(t, coretest.NewView(t, count[uint16](24, 1000), 2, 4, 3)), &Image{}},
		"none":              {coretest.Derive(t, coretest.NewView(t, []uint8{}, 0, 5)), &image.Gray{}},
	}
	for name, c := range cases {
		m, err := Of(c.view)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := kind(m), kind(c.want); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		compare(t, name, m, c.view)
	}
}

func kind(m image.Image) string {
	switch m.(type) {
	case *image.Gray:
		return "Gray"
	case *image.NRGBA:
		return "NRGBA"
	case *Image:
		return "Image"
	}
	return "another"
}

// compare holds a picture to what core reads of the view.
func compare(t *testing.T, name string, m image.Image, v *core.View) {
	t.Helper()
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			channel := func(c int) uint16 {
				index := []int{y, x, c}[:v.Rank()]
				if v.DType() == core.Uint16 {
					got, err := core.At[uint16](v, index...)
					if err != nil {
						t.Fatal(err)
					}
					return got
				}
				got, err := core.At[uint8](v, index...)
				if err != nil {
					t.Fatal(err)
				}
				return uint16(got) * 0x101
			}
			r, g, b, a := channel(0), channel(0), channel(0), uint16(0xffff)
			if v.Rank() == 3 && v.Dim(2) > 1 {
				g, b = channel(1), channel(2)
				if v.Dim(2) == 4 {
					a = channel(3)
				}
			}
			wr, wg, wb, wa := color.NRGBA64{r, g, b, a}.RGBA()
			if gr, gg, gb, ga := m.At(x, y).RGBA(); gr != wr || gg != wg || gb != wb || ga != wa {
				t.Errorf("%s: (%d,%d) is %v, want %v", name, x, y, m.At(x, y), color.NRGBA64{r, g, b, a})
			}
			if fast, ok := m.(image.RGBA64Image); ok {
				if got, want := fast.RGBA64At(x, y), (color.RGBA64{uint16(wr), uint16(wg), uint16(wb), uint16(wa)}); got != want {
					t.Errorf("%s: RGBA64At(%d, %d) is %v, want %v", name, x, y, got, want)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	closed := coretest.NewView(t, count[uint8](4, 1), 2, 2)
	closed.Close()
	cases := map[string]struct {
		view *core.View
		kind error
		text string
	}{
		"one axis":     {coretest.Derive(t, coretest.NewView(t, count[uint8](4, 1))), core.ErrLayout, "have 1 axes"},
		"two channels": {coretest.Derive(t, coretest.NewView(t, count[uint8](8, 1), 2, 2, 2)), core.ErrLayout, "have 2"},
		"floats":       {coretest.Derive(t, coretest.NewView(t, []float32{1}, 1, 1)), core.ErrDType, "want uint8 or uint16"},
		"closed":       {closed, core.ErrClosed, ""},
	}
	for name, c := range cases {
		if _, err := Of(c.view); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Gray(coretest.Derive(t, coretest.NewView(t, count[uint8](6, 1), 2, 3), step(1, -1))); !errors.Is(err, core.ErrLayout) {
		t.Errorf("Gray of a mirrored view: %v", err)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	colours := []color.Color{color.White, color.NRGBA{200, 100, 50, 128}, color.RGBA64{0x1234, 0x2345, 0x3456, 0xffff}, color.Transparent}
	for name, v := range map[string]*core.View{
		"gray": coretest.Derive(t, coretest.NewView(t, make([]uint8, 6), 2, 3)), "rgb": coretest.Derive(t, coretest.NewView(t, make([]uint8, 18), 3, 2, 3), transpose(1, 2, 0)),
		"bgr": coretest.Derive(t, coretest.NewView(t, make([]uint8, 18), 2, 3, 3), step(2, -1)), "rgba": coretest.Derive(t, coretest.NewView(t, make([]uint8, 24), 2, 3, 4)),
		"gray16": coretest.Derive(t, coretest.NewView(t, make([]uint16, 6), 2, 3)), "rgb16": coretest.Derive(t, coretest.NewView(t, make([]uint16, 18), 2, 3, 3)),
		"rgba16": coretest.Derive(t, coretest.NewView(t, make([]uint16, 24), 2, 3, 4)),
	} {
		m, err := New(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range colours {
			want := m.ColorModel().Convert(c)
			if r, g, b, _ := want.RGBA(); strings.HasPrefix(name, "rgb") && m.channels == 3 || name == "bgr" {
				want = m.ColorModel().Convert(color.RGBA64{uint16(r), uint16(g), uint16(b), 0xffff})
			}
			if m.Set(1, 1, c); m.At(1, 1) != want {
				t.Errorf("%s: %v becomes %v, want %v", name, c, m.At(1, 1), want)
			}
		}
		m.Set(5, 0, color.White) // beside it
		m.SetRGBA64(-1, 0, color.RGBA64{A: 0xffff})
		if m.At(2, 1) != m.ColorModel().Convert(m.At(2, 1)) || m.At(5, 0) == m.ColorModel().Convert(color.White) {
			t.Errorf("%s: %v", name, m.At(5, 0))
		}
	}
}

func TestSetIsSeenByPython(t *testing.T) {
	t.Parallel()
	data := make([]uint16, 2)
	m, err := New(coretest.Derive(t, coretest.NewView(t, data, 1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	m.Set(1, 0, color.Gray16{Y: 0x1234})
	if data[1] != 0x1234 {
		t.Errorf("%#x (%v)", data[1], binary.NativeEndian)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	m, err := New(coretest.Derive(t, coretest.NewView(t, make([]uint8, 12), 2, 2, 3), (*core.View).AsReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(){
		"Set":       func() { m.Set(0, 0, color.White) },
		"SetRGBA64": func() { m.SetRGBA64(0, 0, color.RGBA64{}) },
		"Draw":      func() { Draw(m, m.Bounds(), image.White, image.Point{}, draw.Src) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, core.ErrReadOnly) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			write()
		}()
	}
}

func TestSubImage(t *testing.T) {
	t.Parallel()
	v := coretest.Derive(t, coretest.NewView(t, count[uint8](4*5*3, 1), 4, 5, 3), step(0, -1), step(1, -1))
	m, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	part, ok := m.SubImage(image.Rect(1, 1, 9, 3)).(*Image)
	if !ok || part.Bounds() != image.Rect(1, 1, 5, 3) {
		t.Fatalf("%v", part.Bounds())
	}
	for y := 1; y < 3; y++ {
		for x := 1; x < 5; x++ {
			if part.At(x, y) != m.At(x, y) {
				t.Errorf("(%d,%d) is %v, want %v", x, y, part.At(x, y), m.At(x, y))
			}
		}
	}
	if part.Set(2, 2, color.White); m.At(2, 2) != (color.RGBA{255, 255, 255, 255}) {
		t.Errorf("%v", m.At(2, 2))
	}
	if empty := m.SubImage(image.Rect(7, 7, 9, 9)); !empty.Bounds().Empty() || empty.At(7, 7) != (color.RGBA{}) {
		t.Errorf("%v", empty.Bounds())
	}
}

func TestPNG(t *testing.T) {
	t.Parallel()
	data := count[uint8](4*5*4, 7)
	for i := 3; i < len(data); i += 4 {
		data[i] = 0xff
	}
	v := coretest.Derive(t, coretest.NewView(t, data, 4, 5, 4), sub(2, 0, 3))
	m, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, m); err != nil {
		t.Fatal(err)
	}
	back, err := png.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "png", back, v)
	if _, opaque := back.(*image.RGBA); !opaque {
		t.Errorf("%T", back)
	}
	bgra, err := New(coretest.Derive(t, coretest.NewView(t, count[uint8](4, 1), 1, 1, 4), step(2, -1)))
	if err != nil {
		t.Fatal(err)
	}
	if bgra.Opaque() || !m.Opaque() {
		t.Error("what is opaque")
	}
}
