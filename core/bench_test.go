package core_test

import (
	"encoding/json"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// What a host does with each view, and for each element that it asks for by indices. Compare with another commit: make bench-core.

// benchView is a square of so many rows and columns.
func benchView(b *testing.B, n int) *core.View {
	b.Helper()
	return closedAtEnd(b, coretest.NewView(b, make([]float32, n*n), n, n))
}

func closedAtEnd(b *testing.B, v *core.View) *core.View {
	b.Helper()
	b.Cleanup(func() {
		if err := v.Close(); err != nil {
			b.Error(err)
		}
	})
	return v
}

func BenchmarkNewLayout(b *testing.B) {
	for b.Loop() {
		if _, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{32, 3, 224, 224}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlice(b *testing.B) {
	v := benchView(b, 256)
	for b.Loop() {
		if _, err := core.Slice[float32](v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	v := benchView(b, 256)
	for b.Loop() {
		if _, err := core.At[float32](v, 17, 200); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	v := benchView(b, 256)
	for b.Loop() {
		if err := core.Set[float32](v, 1, 17, 200); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSub(b *testing.B) {
	v := benchView(b, 256)
	for b.Loop() {
		part, err := v.Sub(0, 10, 20)
		if err != nil {
			b.Fatal(err)
		}
		if err := part.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalJSON(b *testing.B) {
	v := benchView(b, 256)
	for b.Loop() {
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCopy copies a megabyte, in each way in which it may lie.
func BenchmarkCopy(b *testing.B) {
	v := benchView(b, 512)
	derived := func(part *core.View, err error) *core.View {
		if err != nil {
			b.Fatal(err)
		}
		return closedAtEnd(b, part)
	}
	for _, way := range []struct {
		name string
		view *core.View
	}{
		{"dense", v},
		{"transposed", derived(v.Transpose())},
		{"reversed", derived(v.Step(1, -1))},
		{"a column", derived(v.Sub(1, 100, 101))},
		{"a crop", derived(v.Sub(1, 100, 400))},
	} {
		b.Run(way.name, func(b *testing.B) {
			dst := make([]float32, way.view.Len())
			b.SetBytes(4 * int64(len(dst)))
			for b.Loop() {
				if _, err := core.Copy(b.Context(), dst, way.view); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
