package transfer

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// layouts are arrays that reach from small to larger than some pieces, in all shapes that slicing makes.
func layouts(t *testing.T) map[string]core.Layout {
	t.Helper()
	layout := func(d core.DType, shape ...int) core.Layout {
		l, err := core.NewLayout(core.LayoutSpec{DType: d, Device: core.Device{Kind: core.CUDA}, Shape: shape, Offset: 64})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	matrix := layout(core.Float32, 60, 70)
	cube := layout(core.Uint16, 13, 17, 19)
	return map[string]core.Layout{
		"dense":      matrix,
		"scalar":     layout(core.Float64),
		"empty":      layout(core.Float64, 3, 0),
		"transposed": must(matrix.Transpose()),
		"column":     must(matrix.Select(1, 5)),
		"columns":    must(matrix.Sub(1, 10, 13)),
		"rows":       must(matrix.Step(0, 3)),
		"reversed":   must(matrix.Step(0, -1)),
		"backwards":  must(must(matrix.Step(1, -2)).Transpose()),
		"cube":       must(cube.Transpose(1, 2, 0)),
		"window":     must(must(cube.Sub(1, 3, 9)).Sub(2, 2, 5)),
		"channel":    must(cube.Select(2, 7)),
		"one column": must(must(cube.Select(2, 7)).Select(1, 0)),
		"single":     must(must(cube.Sub(0, 4, 5)).Select(2, 7)),
	}
}

// TestPieces: the pieces of an array are its elements in row-major order, each once, and none is larger
// than the limit, whether they are fetched or sent.
func TestPieces(t *testing.T) {
	t.Parallel()
	memory := make([]byte, 1<<15)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(memory) // never fails
	for name, l := range layouts(t) {
		want := make([]byte, l.NBytes())
		host := l.Spec()
		host.Device = core.Device{}
		onHost, err := core.NewLayout(host)
		if err != nil {
			t.Fatal(err)
		}
		v, err := core.NewView(onHost, pinned(memory), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := core.CopyBytes(t.Context(), want, v); err != nil {
			t.Fatal(err)
		}
		v.Close()
		for _, limit := range []int{8, 100, 1000, 1 << 20} {
			got := make([]byte, l.NBytes())
			rest := got
			for p := range fetches(l, limit) {
				if err := p.gather(t.Context(), rest[:p.size()], fetched(t, p, memory, limit)); err != nil {
					t.Fatal(err)
				}
				rest = rest[p.size():]
			}
			if !bytes.Equal(got, want) || len(rest) != 0 {
				t.Errorf("%s, pieces of %d: not what is there", name, limit)
			}
			sent := make([]byte, len(memory))
			rest = want
			for p := range sends(l, limit) {
				part := make([]byte, p.size())
				if rest, err = p.fill(t.Context(), part, rest); err != nil {
					t.Fatal(err)
				}
				send(t, p, sent, part, limit)
			}
			same(t, name, onHost, memory, sent)
		}
	}
}

// fetched does what the GPU does for a piece.
func fetched(t *testing.T, p piece, memory []byte, limit int) []byte {
	t.Helper()
	var out []byte
	if p.height == 0 {
		out = memory[p.lo:p.hi]
	}
	for y := range p.height {
		out = append(out, memory[p.lo+y*p.pitch:][:p.width]...)
	}
	if len(out) > limit {
		t.Fatalf("a piece of %d bytes", len(out))
	}
	return bytes.Clone(out)
}

// send is fetched the other way round.
func send(t *testing.T, p piece, memory, part []byte, limit int) {
	t.Helper()
	if len(part) > limit || p.layout != nil {
		t.Fatalf("a piece of %d bytes, %+v", len(part), p)
	}
	if p.height == 0 {
		copy(memory[p.lo:p.hi], part)
	}
	for y := range p.height {
		copy(memory[p.lo+y*p.pitch:][:p.width], part[y*p.width:])
	}
}

// same fails unless all bytes of elements, and no others, are as in memory.
func same(t *testing.T, name string, l core.Layout, memory, sent []byte) {
	t.Helper()
	want := make([]byte, len(sent))
	for offset := range l.Offsets() {
		copy(want[offset:offset+l.DType().Size()], memory[offset:])
	}
	if !bytes.Equal(want, sent) {
		t.Errorf("%s: sent is not what it should be", name)
	}
}
