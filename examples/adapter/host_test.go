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

// TestHost takes views of a program's grids, with the quirk and without, writes into one, and hears from
// the program that it is there.
func TestHost(t *testing.T) {
	for _, tt := range []struct {
		config, gridlib string
		land            core.DType
		quirks          []core.QuirkID
	}{
		{"ndbridge.hcl", "gridlib-1.4", core.Bool, []core.QuirkID{"gridlib.bool-before-2"}},
		{"without-quirk.hcl", "gridlib-1.4", core.Uint8, nil},
		{"ndbridge.hcl", "gridlib-2.0", core.Bool, nil},
	} {
		t.Run(tt.config+" "+tt.gridlib, func(t *testing.T) {
			t.Setenv("PYTHONPATH", tt.gridlib)
			t.Setenv("GRIDLIB_PYTHON", programtest.Variable(t, "NDBRIDGE_TEST_PYTHON"))
			t.Setenv("GRIDLIB_PLUGIN", library)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var output strings.Builder
			cfg, err := hostplugin.Load(tt.config)
			check(t, err)
			cfg.Programs[0].Stdout, cfg.Programs[0].Stderr = &output, t.Output()
			host, err := hostplugin.New(cfg)
			check(t, err)
			defer func() { check(t, host.Close()) }()
			survey, err := host.Start(ctx, "survey")
			check(t, err)

			land, err := survey.View(ctx, "land", hostplugin.NoCopy())
			check(t, err)
			if land.DType() != tt.land || !slices.Equal(land.Quirks(), tt.quirks) {
				t.Errorf("land is of %v by %v, want %v by %v", land.DType(), land.Quirks(), tt.land, tt.quirks)
			}
			heights, err := survey.View(ctx, "heights", hostplugin.NoCopy(), hostplugin.Writable())
			check(t, err)
			if heights.DType() != core.Float32 || len(heights.Quirks()) != 0 {
				t.Errorf("heights is of %v by %v", heights.DType(), heights.Quirks())
			}
			for _, v := range []*core.View{land, heights} {
				if v.Framework() != "gridlib" || !slices.Equal(v.Shape(), []int{300, 400}) || v.Copied() {
					t.Errorf("%s: %v of %s by %v", v.Name(), v.Layout(), v.Framework(), v.Route())
				}
			}
			var names []string
			for entry, err := range survey.Arrays(ctx) {
				check(t, err)
				check(t, entry.Err)
				names = append(names, entry.Name)
			}
			if want := []string{"heights", "land"}; !slices.Equal(names, want) {
				t.Errorf("%v are listed, want %v", names, want)
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
