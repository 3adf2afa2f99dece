package pieces_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/pieces"
)

// view makes a view of 1,024 bytes that are all different from their neighbours.
func view(t *testing.T, s core.LayoutSpec) *core.View {
	t.Helper()
	data := make([]byte, 1024)
	for i := range data {
		data[i] = byte(i * 7)
	}
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(data), &core.ViewOptions{Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func TestPiecesMakeTheWhole(t *testing.T) {
	t.Parallel()
	opaque, err := core.Opaque(24)
	if err != nil {
		t.Fatal(err)
	}
	int2, err := core.NewDType(core.Int8.Code(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]core.LayoutSpec{
		"dense":       {DType: core.Float32, Shape: []int{4, 8, 8}},
		"transposed":  {DType: core.Float32, Shape: []int{16, 16}, Strides: []int{4, 64}},
		"reversed":    {DType: core.Uint16, Shape: []int{30, 3}, Strides: []int{-8, 2}, Offset: 29 * 8},
		"broadcast":   {DType: core.Uint8, Shape: []int{50, 7}, Strides: []int{0, 3}},
		"overlapping": {DType: core.Float64, Shape: []int{20, 5}, Strides: []int{8, 8}},
		"no axis":     {DType: core.Complex128},
		"empty":       {DType: core.Float32, Shape: []int{5, 0, 3}},
		"ones":        {DType: core.Int8, Shape: []int{1, 1, 100, 1}},
		"opaque":      {DType: opaque, Shape: []int{6, 5}, Strides: []int{24, 7 * 24}},
		"packed":      {DType: core.Int4, Shape: []int{9, 11}},
		"packed more": {DType: int2, Shape: []int{1001}},
	}
	for name, spec := range specs {
		for _, size := range []int{1, 7, 64, 1 << 20} {
			t.Run(fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				t.Parallel()
				v := view(t, spec)
				want := make([]byte, v.NBytes())
				if _, err := core.CopyBytes(t.Context(), want, v); err != nil {
					t.Fatal(err)
				}
				var got []byte
				for piece, err := range pieces.Of(t.Context(), v, size) {
					if err != nil {
						t.Fatal(err)
					}
					if len(piece) == 0 || len(piece) > max(size, v.DType().Size()) {
						t.Fatalf("a piece of %d bytes", len(piece))
					}
					got = append(got, piece...)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("got % x\nwant % x", got, want)
				}
			})
		}
	}
}

func TestLoopCanBeLeft(t *testing.T) {
	t.Parallel()
	v := view(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{10, 10}, Strides: []int{1, 10}})
	n := 0
	for range pieces.Of(t.Context(), v, 10) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d rounds", n)
	}
}

func TestErrorsEndTheLoop(t *testing.T) {
	t.Parallel()
	for _, d := range []core.DType{core.Uint8, core.Int4} {
		v := view(t, core.LayoutSpec{DType: d, Shape: []int{16, 16}})
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		rounds := 0
		for piece, err := range pieces.Of(t.Context(), v, 16) {
			rounds++
			if piece != nil || !errors.Is(err, core.ErrClosed) {
				t.Errorf("%v: got %d bytes, %v", d, len(piece), err)
			}
		}
		if rounds != 1 {
			t.Errorf("%v: %d rounds", d, rounds)
		}
	}
}

// device is memory that the host cannot read.
type device struct{ *coretest.Memory }

func (device) Bytes() []byte { return nil }

func TestDeviceMemoryIsRefused(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{
		DType: core.Uint8, Shape: []int{4, 4}, Device: core.Device{Kind: core.CUDA},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, device{coretest.NewMemory(make([]byte, 16))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, err = range pieces.Of(t.Context(), v, 4) {
		if !errors.Is(err, core.ErrDevice) {
			t.Errorf("got %v", err)
		}
	}
	if err == nil {
		t.Error("device memory was read")
	}
}

// TestMemoryIsNotCopied sees that what lies as it is wanted comes from where it is, unless it could be cut off or written to.
func TestMemoryIsNotCopied(t *testing.T) {
	t.Parallel()
	dense := core.LayoutSpec{DType: core.Uint16, Shape: []int{16, 8}}
	crop := core.LayoutSpec{DType: core.Uint16, Shape: []int{4, 8}, Strides: []int{64, 2}}
	for name, c := range map[string]struct {
		spec    core.LayoutSpec
		route   core.Route
		version uint64
		inPlace bool
	}{
		"dense":       {dense, contract.RouteSharedHeap, 1, true},
		"rows":        {crop, contract.RouteSharedHeap, 1, true},
		"being used":  {dense, contract.RouteSharedHeap, 0, false},
		"in a file":   {dense, contract.RouteMappedFile, 1, false},
		"every other": {core.LayoutSpec{DType: core.Uint16, Shape: []int{4, 8}, Strides: []int{64, 4}}, contract.RouteSharedHeap, 1, false},
	} {
		l, err := core.NewLayout(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 1024)
		v, err := core.NewView(l, coretest.NewMemory(data), &core.ViewOptions{Route: c.route, Version: c.version})
		if err != nil {
			t.Fatal(err)
		}
		for piece, err := range pieces.Of(t.Context(), v, 16) {
			if err != nil {
				t.Fatal(err)
			}
			before := piece[0]
			for i := range data {
				data[i]++
			}
			if got := piece[0] != before; got != c.inPlace {
				t.Errorf("%s: in place %v, want %v", name, got, c.inPlace)
			}
		}
		v.Close()
	}
}

// TestMemoryStaysForAPiece closes a view while a piece of it is in use.
func TestMemoryStaysForAPiece(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{64}})
	if err != nil {
		t.Fatal(err)
	}
	memory := coretest.NewMemory(make([]byte, 64))
	v, err := core.NewView(l, memory, &core.ViewOptions{Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	for piece, err := range pieces.Of(t.Context(), v, 16) {
		if err != nil {
			if piece != nil || !errors.Is(err, core.ErrClosed) || memory.Closed() != 1 {
				t.Errorf("%v, and the memory was closed %d times", err, memory.Closed())
			}
			break
		}
		if err := v.Close(); err != nil || memory.Closed() != 0 {
			t.Errorf("%v, and the memory was closed %d times in use", err, memory.Closed())
		}
	}
}

func TestContextIsObeyed(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]core.LayoutSpec{
		"in place": {DType: core.Uint8, Shape: []int{64}}, "copied": {DType: core.Uint8, Shape: []int{8, 8}, Strides: []int{1, 8}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		rounds := 0
		var last error
		for _, err := range pieces.Of(ctx, view(t, spec), 16) {
			if rounds++; rounds == 2 {
				cancel()
			}
			last = err
		}
		if rounds != 3 || !errors.Is(last, context.Canceled) {
			t.Errorf("%s: %d rounds, %v", name, rounds, last)
		}
		cancel()
	}
}
