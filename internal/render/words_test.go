package render_test

import (
	"math"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/render"
)

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1536: "1.5 KiB", 32 << 20: "32.0 MiB",
		1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB", 1 << 50: "1.0 PiB", math.MaxInt64: "8.0 EiB",
	} {
		if got := render.Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	for want, shape := range map[string][]int{
		"one element, no axes": {}, "7": {7}, "0 x 3": {0, 3}, "480 x 640 x 3": {480, 640, 3},
	} {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		if got := render.Shape(l); got != want {
			t.Errorf("%v is %q, want %q", shape, got, want)
		}
	}
}

// TestDepthOfWhatIsNoTerminal holds that files and pipes get no colours unless they are asked for.
// Terminals are tested with the command line.
func TestDepthOfWhatIsNoTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("COLORTERM", "")
	t.Setenv("NO_COLOR", "")
	for when, want := range map[render.When]render.Depth{
		render.Auto: render.Mono, render.Never: render.Mono, render.Always: render.TrueColour,
	} {
		if got := render.DepthOf(t.Output(), when); got != want {
			t.Errorf("%s: depth %d, want %d", when, got, want)
		}
	}
}
