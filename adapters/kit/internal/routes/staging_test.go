package routes

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

func TestCopyLayouts(t *testing.T) {
	t.Parallel()
	const page = 4096
	tests := []struct {
		name    string
		spec    core.LayoutSpec
		first   int   // where in the memory element 0 lies
		strides []int // of the copy; nil: those of the array
		size    int64 // bytes copied
	}{
		{
			name: "dense", size: 24 * 8,
			spec: core.LayoutSpec{DType: core.Float64, Shape: []int{4, 6}},
		}, {
			name: "scalar", size: 2, first: 7,
			spec: core.LayoutSpec{DType: core.Int16},
		}, {
			name: "odd number of elements, between words", size: 12, first: 4,
			spec: core.LayoutSpec{DType: core.Float32, Shape: []int{3}},
		}, {
			name: "reversed", size: 40, first: 36,
			spec: core.LayoutSpec{DType: core.Int32, Shape: []int{10}, Strides: []int{-4}},
		}, {
			name: "fortran", size: 48,
			spec: core.LayoutSpec{DType: core.Float32, Shape: []int{3, 4}, Strides: []int{4, 12}},
		}, {
			name: "every other element keeps its strides", size: 8*1998 + 8,
			spec: core.LayoutSpec{DType: core.Float64, Shape: []int{1000}, Strides: []int{16}},
		}, {
			name: "every fourth element is packed", size: 8 * 2000, strides: []int{8},
			spec: core.LayoutSpec{DType: core.Float64, Shape: []int{2000}, Strides: []int{32}},
		}, {
			name: "columns of a wide array are packed row by row", size: 100 * 12, strides: []int{12, 4},
			spec: core.LayoutSpec{DType: core.Float32, Shape: []int{100, 3}, Strides: []int{400, 4}},
		}, {
			name: "reversed columns are packed", size: 100 * 12, first: 99*400 + 8, strides: []int{12, 4},
			spec: core.LayoutSpec{DType: core.Float32, Shape: []int{100, 3}, Strides: []int{-400, -4}},
		}, {
			name: "rows far apart, many to a batch", size: 3000 * 2, strides: []int{6, 2, 1},
			spec: core.LayoutSpec{DType: core.Uint8, Shape: []int{1000, 3, 2}, Strides: []int{100, 20, 10}},
		}, {
			name: "broadcast axes stay, packed or not", size: 500 * 4, strides: []int{0, 4, 0},
			spec: core.LayoutSpec{DType: core.Int32, Shape: []int{7, 500, 9}, Strides: []int{0, 60, 0}},
		}, {
			name: "broadcast of one element", size: 4,
			spec: core.LayoutSpec{DType: core.Int32, Shape: []int{1000, 1000}, Strides: []int{0, 0}},
		}, {
			name: "sliding window", size: 8 * 1000,
			spec: core.LayoutSpec{DType: core.Float64, Shape: []int{901, 100}, Strides: []int{8, 8}},
		}, {
			name: "packed elements", size: 50,
			spec: core.LayoutSpec{DType: core.Int4, Shape: []int{100}},
		}, {
			name: "opaque records, unaligned", size: 10 * 13, first: 3,
			spec: core.LayoutSpec{DType: opaque(13), Shape: []int{10}, Tag: "rec"},
		}, {
			name: "larger than a slot", size: 20 * page * 8,
			spec: core.LayoutSpec{DType: core.Float64, Shape: []int{20, page}},
		}, {
			name: "extents of one count for nothing", size: 16, strides: []int{1 << 40, 8, -1 << 40},
			spec: core.LayoutSpec{
				DType: core.Float64, Shape: []int{1, 2, 1}, Strides: []int{1 << 40, 8, -1 << 40},
			},
		},
	}
	memory, start := anonymous(t, 1<<20)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var s Staging
			source := layout(t, tt.spec)
			c, err := s.Copy(t.Context(), Array{Addr: start + uintptr(tt.first), Layout: source}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			defer c.Drop()
			if want := cmpNil(tt.strides, source.Strides()); !slices.Equal(c.Layout.Strides(), want) {
				t.Errorf("strides %v, want %v", c.Layout.Strides(), want)
			}
			if lo, hi := c.Layout.Span(); int64(hi-lo) != tt.size {
				t.Errorf("the copy spans %d bytes, want %d", hi-lo, tt.size)
			}
			number := source.DType().Size() & -source.DType().Size()
			if aligned := tt.strides == nil && number > 1 && tt.first%number == 0; aligned && (c.room.size%8 != 0 || (c.Layout.Offset()-tt.first)%8 != 0) {
				t.Errorf("element 0 lies at %d of %d bytes, and at %d of the memory: numbers are not in the same words", c.Layout.Offset(), c.room.size, tt.first)
			}
			if number > 1 && c.Layout.Offset()%number != 0 {
				t.Errorf("element 0 lies at %d", c.Layout.Offset())
			}
			if c.Layout.Tag() != source.Tag() || c.Layout.ReadOnly() != source.ReadOnly() {
				t.Errorf("layout %+v of %+v", c.Layout.Spec(), source.Spec())
			}
			if source.DType().Packed() {
				if !bytes.Equal(contents(t, c.Backing)[c.Layout.Offset():][:tt.size], memory[:tt.size]) {
					t.Error("wrong bytes")
				}
				return
			}
			spec := source.Spec()
			spec.Offset = tt.first
			want := elements(memory, layout(t, spec))
			if got := elements(contents(t, c.Backing), c.Layout); !bytes.Equal(got, want) {
				t.Error("wrong elements")
			}
		})
	}
}

func opaque(n int) core.DType {
	d, err := core.Opaque(n)
	if err != nil {
		panic(err)
	}
	return d
}

func cmpNil(a, b []int) []int {
	if a != nil {
		return a
	}
	return b
}

func TestCopyBadPointers(t *testing.T) {
	t.Parallel()
	memory, start := anonymous(t, 8*4096)
	if err := unix.Mprotect(memory[4*4096:6*4096], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	bytesAt := func(n int) core.Layout {
		return layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{n}})
	}
	scattered := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{100}, Strides: []int{300}})
	tests := []struct {
		name string
		a    Array
	}{
		{"inaccessible", Array{start + 4*4096, bytesAt(10)}},
		{"runs into inaccessible memory", Array{start, bytesAt(8 * 4096)}},
		{"scattered into inaccessible memory", Array{start, scattered}},
		{"null", Array{0, bytesAt(1)}},
		{"first page", Array{8, bytesAt(1)}},
		{"kernel", Array{1<<63 + 4096, bytesAt(1)}},
		{"past the end of the addresses", Array{^uintptr(0) - 4, bytesAt(100)}},
		{"before the first address", Array{100, layout(t, core.LayoutSpec{
			DType: core.Uint8, Shape: []int{200}, Strides: []int{-1},
		})}},
	}
	var s Staging
	for _, tt := range tests {
		if _, err := s.Copy(t.Context(), tt.a, nil); !errors.Is(err, core.ErrPointer) {
			t.Errorf("%s: %v, want ErrPointer", tt.name, err)
		}
	}
	for class := range s.pads {
		for _, p := range s.pads[class] {
			if p.used != 0 {
				t.Errorf("slots %b of %d bytes are still taken", p.used, slotSize(class))
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCopyObeysContext(t *testing.T) {
	t.Parallel()
	_, start := anonymous(t, 64<<10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var s Staging
	defer s.Close()
	l := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{64 << 10}})
	if _, err := s.Copy(ctx, Array{start, l}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestStagingRecycles(t *testing.T) {
	t.Parallel()
	_, start := anonymous(t, 1<<20)
	for _, n := range []int{1, 4096, 4097, 65536, 65537, 1 << 20} {
		var s Staging
		l := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{n}})
		keys := map[any]bool{}
		for range 100 {
			c, err := s.Copy(t.Context(), Array{start, l}, nil)
			if err != nil {
				t.Fatal(err)
			}
			keys[c.Backing.Key()] = true
			c.Drop()
		}
		if len(keys) != 1 {
			t.Errorf("100 copies of %d bytes, one after another, took %d files, want 1", n, len(keys))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStagingSlots(t *testing.T) {
	t.Parallel()
	memory, start := anonymous(t, 1<<20)
	var s Staging
	const n = 3*slotsPerPad + 5
	copies := make([]Copied, n)
	one := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1000}})
	for i := range copies {
		var err error
		if copies[i], err = s.Copy(t.Context(), Array{start + uintptr(i), one}, nil); err != nil {
			t.Fatal(err)
		}
	}
	files := map[any]bool{}
	for i, c := range copies {
		files[c.Backing.Key()] = true
		if !bytes.Equal(elements(contents(t, c.Backing), c.Layout), memory[i:i+1000]) {
			t.Errorf("copy %d was overwritten", i)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d copies lie in %d files, want 4", n, len(files))
	}
	for _, c := range copies {
		c.Drop()
	}
	if len(s.pads[0]) != 1 || s.pads[0][0].used != 0 {
		t.Errorf("%d empty pads are kept, want 1", len(s.pads[0]))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if len(s.pads[0]) != 0 {
		t.Error("a pad outlived Close")
	}
}

func TestStagingWarmLimit(t *testing.T) {
	t.Parallel()
	var s Staging
	var drops []func()
	for i := range 40 {
		room, err := s.allocate(int64(100<<10 + i*(20<<20)))
		if err != nil {
			t.Fatal(err)
		}
		drops = append(drops, room.Drop)
	}
	for _, drop := range drops {
		drop()
	}
	var total int64
	for _, m := range s.warm {
		total += m.size
	}
	if total > warmBytes || len(s.warm) > warmFiles {
		t.Errorf("%d bytes in %d files are kept warm", total, len(s.warm))
	}
	room, err := s.allocate(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	room.Drop()
	if len(s.warm) != 0 {
		t.Error("a file is kept after Close")
	}
	if _, err := s.allocate(1); !errors.Is(err, core.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func TestStagingFileSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{65537, 100 << 10, 128 << 10, 1 << 20, 1<<20 + 1, 1<<30 + 1, 5 << 40} {
		got := roundUp(size)
		if got < size || got%granule != 0 || got > size+max(size/4, granule) {
			t.Errorf("a file of %d bytes for %d", got, size)
		}
	}
}

func TestStagingPut(t *testing.T) {
	t.Parallel()
	var s Staging
	defer s.Close()
	data := make([]byte, 100)
	shmtest.Fill(data)
	l := layout(t, core.LayoutSpec{DType: core.Int16, Shape: []int{10}, Strides: []int{-4}, Offset: 60})
	c, err := s.Put(data, l)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	if !bytes.Equal(elements(contents(t, c.Backing), c.Layout), elements(data, l)) {
		t.Error("wrong elements")
	}
	if _, err := s.Put(data[:61], l); !errors.Is(err, core.ErrLayout) {
		t.Errorf("an array that reaches beyond its bytes: %v, want ErrLayout", err)
	}
}

func TestStagingConcurrent(t *testing.T) {
	t.Parallel()
	memory, start := anonymous(t, 256<<10)
	var s Staging
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for i := range 200 {
				n := 1 + (worker*7919+i*104729)%(200<<10)
				l := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{n}})
				c, err := s.Copy(t.Context(), Array{start + uintptr(worker), l}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				got := make([]byte, n)
				m, _ := c.Backing.(*memfile)
				if _, err := m.file.ReadAt(got, int64(c.Layout.Offset())); err != nil {
					t.Error(err)
				} else if !bytes.Equal(got, memory[worker:worker+n]) {
					t.Errorf("a copy of %d bytes holds another's", n)
				}
				c.Drop()
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
