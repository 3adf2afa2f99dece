package hostplugin_test

import (
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// awake has both sides look for each other for as long as a busy machine may need, so that they meet in the
// mailbox.
func awake(p *hostplugin.Program) { p.Handoff.Spin = 10 * time.Millisecond }

// BenchmarkRefresh looks at an array of another process again and again.
func BenchmarkRefresh(b *testing.B) {
	src := source(b, startWith(b, awake), "samples")
	var v *core.View
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if v, _, err = src.Refresh(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkView makes a View each time.
func BenchmarkView(b *testing.B) {
	src := source(b, startWith(b, awake), "samples")
	b.ReportAllocs()
	for b.Loop() {
		v, err := src.View(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
