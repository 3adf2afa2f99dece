package hostplugin_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// BenchmarkInto looks at an array of another process again and again.
func BenchmarkInto(b *testing.B) {
	src := source(b, startWith(b, awake), "samples")
	var v core.View
	b.ReportAllocs()
	for b.Loop() {
		if err := src.Into(b.Context(), &v); err != nil {
			b.Fatal(err)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
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
