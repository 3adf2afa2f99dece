package gridlib_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestHost takes a view of a program's grid, writes into it, and hears from the program that it is there.
func TestHost(t *testing.T) {
	for _, tt := range []struct {
		config, gridlib string
		height          float32 // what the host sees of the 7.5 that the program has put
		quirks          []core.QuirkID
	}{
		{"ndbridge.hcl", "gridlib-1.4", 7.5, []core.QuirkID{"gridlib.pending-before-2"}},
		{"without-quirk.hcl", "gridlib-1.4", 0, nil},
		{"ndbridge.hcl", "gridlib-2.0", 7.5, nil},
	} {
		t.Run(tt.config+" "+tt.gridlib, func(t *testing.T) {
			t.Setenv("PYTHONPATH", tt.gridlib)
			t.Setenv("GRIDLIB_PYTHON", programtest.Variable(t, "NDBRIDGE_TEST_PYTHON"))
			t.Setenv("GRIDLIB_PLUGIN", library)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var output strings.Builder
			listed := 0
			host, err := hostplugin.Open(ctx, tt.config, hostplugin.WithOutput(&output, t.Output()))
			check(t, err)
			defer func() { check(t, host.Close()) }()
			survey, err := host.Start(ctx, "survey")
			check(t, err)

			heights, err := survey.View(ctx, "heights", hostplugin.Writable(), hostplugin.NoCopy())
			check(t, err)
			if heights.Framework() != "gridlib" || heights.DType() != core.Float32 ||
				!slices.Equal(heights.Shape(), []int{300, 400}) || heights.Route() != core.RouteSharedHeap {
				t.Errorf("%v of %s by %v", heights.Layout(), heights.Framework(), heights.Route())
			}
			if !slices.Equal(heights.Quirks(), tt.quirks) {
				t.Errorf("quirks %v, want %v", heights.Quirks(), tt.quirks)
			}
			height, err := core.At[float32](heights, 10, 20)
			check(t, err)
			if height != tt.height {
				t.Errorf("the height is %v, want %v", height, tt.height)
			}

			for entry, err := range survey.Arrays(ctx) {
				check(t, err)
				if entry.Name != "heights" || entry.Err != nil {
					t.Errorf("%s is listed: %v", entry.Name, entry.Err)
				}
				listed++
			}
			if listed != 1 {
				t.Errorf("%d arrays are listed, want heights alone", listed)
			}

			check(t, core.Set(heights, float32(42), 0, 0)) // the program waits for that
			check(t, survey.Wait(ctx))
			check(t, host.Close()) // after which all output is there
			if got, want := output.String(), "somebody wrote 42.0\n"; got != want {
				t.Errorf("the program prints %q, want %q", got, want)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
