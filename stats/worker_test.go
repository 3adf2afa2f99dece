package stats_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestOneWorkerIsTheCaller holds that what one worker does takes the time of the thread that asks for it, by which others pace themselves.
func TestOneWorkerIsTheCaller(t *testing.T) {
	t.Parallel()
	data := make([]float64, 1<<24)
	v, flat := coretest.NewView(t, data, 1<<12, 1<<12), coretest.NewView(t, data)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := func() int64 {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
			t.Fatal(err)
		}
		return at.Nano()
	}
	plane := stats.PlaneOf(v.Layout())
	for name, look := range map[string]func() error{
		"figures": func() error { _, err := stats.Of(t.Context(), v, &stats.Options{Workers: 1}); return err },
		"image": func() error {
			_, err := stats.Image(t.Context(), v, plane, 512, 512, &stats.CellOptions{Workers: 1})
			return err
		},
		"line": func() error {
			_, err := stats.Line(t.Context(), flat, 0, nil, 512, &stats.CellOptions{Workers: 1})
			return err
		},
	} {
		begun := own()
		if err := look(); err != nil {
			t.Fatal(err)
		}
		if took := own() - begun; took < 1e6 {
			t.Errorf("%s: the caller's thread took %d ns for millions of elements", name, took)
		}
	}
}
