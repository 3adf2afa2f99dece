package routes

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// againCases are arrays that are copied: how each lies in memory, and whether one copy of bytes is enough.
var againCases = map[string]struct {
	spec   core.LayoutSpec
	first  int // where in the memory element 0 lies
	direct bool
}{
	"dense":    {core.LayoutSpec{DType: core.Float64, Shape: []int{4, 6}}, 16, true},
	"scalar":   {core.LayoutSpec{DType: core.Int16}, 6, true},
	"reversed": {core.LayoutSpec{DType: core.Int32, Shape: []int{10}, Strides: []int{-4}}, 36, true},
	"gaps":     {core.LayoutSpec{DType: core.Float64, Shape: []int{100}, Strides: []int{16}}, 0, true},
	"packed":   {core.LayoutSpec{DType: core.Int4, Shape: []int{100}}, 8, true},
	"scattered": {
		core.LayoutSpec{DType: core.Float32, Shape: []int{100, 3}, Strides: []int{400, 4}}, 0, false,
	},
	"large": {core.LayoutSpec{DType: core.Uint8, Shape: []int{300_000}}, 0, false}, // a file of its own
}

// TestCopyAgain: the same array is copied again to the same place, by either way.
func TestCopyAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range againCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, start := anonymous(t, 1<<19)
			var s Staging
			defer s.Close()
			a := Array{start + uintptr(tt.first), layout(t, tt.spec)}
			neighbour, err := s.Copy(t.Context(), a, nil) // in the next slot
			if err != nil {
				t.Fatal(err)
			}
			defer neighbour.Drop()
			c, err := s.Copy(t.Context(), a, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Drop()
			check := func(when string) {
				t.Helper()
				want, err := s.Copy(t.Context(), a, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer want.Drop()
				_, end := c.Layout.Span()
				_, wantEnd := want.Layout.Span()
				got, all := contents(t, c.Backing)[:end], contents(t, want.Backing)[:wantEnd]
				n := int(c.room.size)
				if !bytes.Equal(got[end-n:], all[wantEnd-n:]) {
					t.Errorf("%s the copy is not the array", when)
				}
			}
			layout := c.Layout
			scramble(memory, 3)
			if ok, err := c.Again(t.Context(), a); !ok || err != nil || !c.Layout.Equal(layout) {
				t.Fatalf("Again = %v, %v", ok, err)
			}
			check("after Again")
			scramble(memory, 5)
			from, to, size, ok := c.Direct(a)
			if ok != tt.direct {
				t.Fatalf("Direct = %v, want %v", ok, tt.direct)
			}
			apart, err := s.Copy(t.Context(), a, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer apart.Drop()
			if !c.Take(&apart) || !c.Layout.Equal(layout) {
				t.Fatal("one copy does not take what the other shows")
			}
			check("after Take")
			scramble(memory, 5)
			if ok {
				mapping := c.room.file.mapping
				copy(mapping.Bytes()[to-mapping.Addr():], memory[from-start:][:size])
				check("after a copy of bytes")
			}
			scramble(memory, 7)
			if elsewhere := (Array{a.Addr + 64, a.Layout}); name != "large" {
				if ok, err := c.Again(t.Context(), elsewhere); !ok || err != nil {
					t.Errorf("Again with an array of the same kind elsewhere = %v, %v", ok, err)
				}
				a = elsewhere
				check("after the copy of another array")
			}
		})
	}
}

// scramble changes all bytes.
func scramble(b []byte, by byte) {
	for i := range b {
		b[i] += by
	}
}

// TestCopyAgainOfSomethingElse: what would lie there in another way is not copied.
func TestCopyAgainOfSomethingElse(t *testing.T) {
	t.Parallel()
	_, start := anonymous(t, 1<<19)
	var s Staging
	defer s.Close()
	c, err := s.Copy(t.Context(), Array{start, layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4, 6}})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	before := contents(t, c.Backing)
	for name, spec := range map[string]core.LayoutSpec{
		"fewer elements": {DType: core.Float32, Shape: []int{4, 5}},
		"more elements":  {DType: core.Float32, Shape: []int{4, 7}},
		"another shape":  {DType: core.Float32, Shape: []int{6, 4}},
		"other strides":  {DType: core.Float32, Shape: []int{4, 6}, Strides: []int{4, 16}},
		"another dtype":  {DType: core.Int32, Shape: []int{4, 6}},
		"another tag":    {DType: opaque(4), Shape: []int{4, 6}, Tag: "x"},
		"read-only":      {DType: core.Float32, Shape: []int{4, 6}, ReadOnly: true},
		"another extent": {DType: core.Float32, Shape: []int{4, 6}, Strides: []int{32, 4}},
		"a large array":  {DType: core.Float32, Shape: []int{4, 60_000 / 4}},
		"another first":  {DType: core.Float32, Shape: []int{4, 6}, Strides: []int{-24, 4}},
	} {
		a := Array{start + 400, layout(t, spec)}
		if ok, err := c.Again(t.Context(), a); ok || err != nil {
			t.Errorf("%s: Again = %v, %v", name, ok, err)
		}
	}
	if !bytes.Equal(contents(t, c.Backing), before) {
		t.Error("what was refused was copied")
	}
}

// TestCopyAgainErrors: memory that has gone is an error and not a fault, and a context is obeyed.
func TestCopyAgainErrors(t *testing.T) {
	t.Parallel()
	memory, start := anonymous(t, 1<<16)
	var s Staging
	defer s.Close()
	a := Array{start, layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1000}})}
	c, err := s.Copy(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Again(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if err := unix.Mprotect(memory, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Again(t.Context(), a); !errors.Is(err, core.ErrPointer) {
		t.Errorf("%v, want ErrPointer", err)
	}
}

// TestReserve: memory for a copy is there before the copy, which takes it over if it has the right size.
func TestReserve(t *testing.T) {
	t.Parallel()
	memory, start := shmtest.Map(t, nil, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	shmtest.Fill(memory)
	for _, n := range []int{1, 4096, 60 << 10, 300_000} {
		var s Staging
		a := Array{start, layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{n}})}
		other := Array{start, layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{n + 1}})}
		room, err := s.Reserve(a)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(room.file.file.Fd()), &st); err != nil || st.Blocks*512 < int64(n) {
			t.Errorf("%d of %d bytes are there, %v", st.Blocks*512, n, err)
		}
		c, err := s.Copy(t.Context(), a, room)
		if err != nil || c.Backing != kit.Backing(room.file) || c.room != room {
			t.Fatalf("the copy of %d bytes is not in the room, %v", n, err)
		}
		if at := c.Layout.Offset(); !bytes.Equal(contents(t, c.Backing)[at:at+n], memory[:n]) {
			t.Error("wrong bytes")
		}
		c.Drop()
		if room, err = s.Reserve(a); err != nil {
			t.Fatal(err)
		}
		if c, err = s.Copy(t.Context(), other, room); err != nil || c.room == room {
			t.Errorf("an array of %d bytes is in a room for %d, %v", n+1, n, err)
		}
		c.Drop()
		if room, err = s.Reserve(a); err != nil {
			t.Fatal(err)
		}
		missing := Array{start + 1<<30, a.Layout}
		if _, err := s.Copy(t.Context(), missing, room); !errors.Is(err, core.ErrPointer) {
			t.Errorf("%v, want ErrPointer", err)
		}
		if room, err = s.Reserve(a); err != nil {
			t.Fatal(err)
		}
		room.Drop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, pads := range s.pads { // what is in use stays
			if len(pads) != 0 {
				t.Errorf("a slot for %d bytes is still in use", n)
			}
		}
		if _, err := s.Reserve(a); !errors.Is(err, core.ErrClosed) {
			t.Errorf("Reserve after Close = %v", err)
		}
	}
}
