package core_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// far is memory that the CPU cannot read, as a GPU's: it is there when ready is closed, and copies itself.
type far struct {
	*coretest.Memory
	ready  chan struct{}
	layout core.Layout // of the last copy
	err    error       // of every copy
}

func newFar(data []int32) *far {
	f := &far{Memory: coretest.NewMemory(data), ready: make(chan struct{})}
	close(f.ready)
	return f
}

func (f *far) Bytes() []byte { return nil }

func (f *far) Ready(ctx context.Context) error {
	select {
	case <-f.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// near is the same memory for the CPU.
func (f *far) near(l core.Layout) (*core.View, error) {
	f.layout = l
	spec := l.Spec()
	spec.Device = core.Device{}
	m, err := core.NewLayout(spec)
	if err != nil {
		return nil, err
	}
	return core.NewView(m, f.Memory, &core.ViewOptions{Writable: true})
}

func (f *far) CopyOut(ctx context.Context, dst []byte, l core.Layout) error {
	v, err := f.near(l)
	if err != nil || f.err != nil {
		return errors.Join(f.err, err, v.Close())
	}
	_, err = core.CopyBytes(ctx, dst, v)
	return errors.Join(err, v.Close())
}

func (f *far) CopyIn(ctx context.Context, l core.Layout, src []byte) error {
	v, err := f.near(l)
	if err != nil || f.err != nil {
		return errors.Join(f.err, err, v.Close())
	}
	numbers := make([]int32, 0, len(src)/4)
	for chunk := range slices.Chunk(src, 4) {
		numbers = append(numbers, int32(chunk[0])|int32(chunk[1])<<8)
	}
	_, err = core.Put(ctx, v, numbers)
	return errors.Join(err, v.Close())
}

// onGPU is the layout of a 2 by 3 array there.
var onGPU = core.LayoutSpec{DType: core.Int32, Device: core.Device{Kind: core.CUDA}, Shape: []int{2, 3}, Offset: 4}

func TestCopierCopies(t *testing.T) {
	t.Parallel()
	data := []int32{-1, 1, 2, 3, 4, 5, 6, -1}
	m := newFar(data)
	v := open(t, onGPU, m, &core.ViewOptions{Name: "frame", Writable: true})
	turned, err := v.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, turned)
	got := make([]int32, 7)
	if n, err := core.Copy(t.Context(), got, turned); n != 6 || err != nil || !slices.Equal(got, []int32{1, 4, 2, 5, 3, 6, 0}) {
		t.Errorf("Copy: %d, %v, %v", n, err, got)
	}
	if !m.layout.Equal(turned.Layout()) {
		t.Errorf("the memory copied %v", m.layout.Spec())
	}
	raw := make([]byte, 24)
	if n, err := core.CopyBytes(t.Context(), raw, turned); n != 24 || err != nil || raw[0] != 1 || raw[4] != 4 {
		t.Errorf("CopyBytes: %d, %v, %v", n, err, raw)
	}
	if n, err := core.Put(t.Context(), turned, []int32{10, 40, 20, 50, 30, 60}); n != 6 || err != nil {
		t.Errorf("Put: %d, %v", n, err)
	}
	if want := []int32{-1, 10, 20, 30, 40, 50, 60, -1}; !slices.Equal(data, want) {
		t.Errorf("the memory is %v, want %v", data, want)
	}
}

// TestCopierErrors holds that what a memory says becomes an error of the operation on the array, with one category.
func TestCopierErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		said error
		want string
	}{
		"an Error":              {&core.Error{Op: "use", Kind: core.ErrPointer, Remedy: "look again"}, "invalid pointer"},
		"an Error without Kind": {&core.Error{Op: "use", Err: core.ErrDevice}, "wrong device"},
		"an empty Error":        {&core.Error{}, "unavailable"},
		"a sentinel":            {core.ErrClosed, "closed"},
		"another error":         {fs.ErrPermission, "unavailable"},
	} {
		m := newFar(make([]int32, 8))
		m.err = tc.said
		v := open(t, onGPU, m, &core.ViewOptions{Name: "frame", Writable: true})
		_, copied := core.Copy(t.Context(), make([]int32, 6), v)
		_, put := core.Put(t.Context(), v, make([]int32, 6))
		for op, err := range map[string]error{"copy": copied, "put": put} {
			e, ok := errors.AsType[*core.Error](err)
			if !ok || e.Op != op || e.Object != "frame" || core.Category(err) != tc.want {
				t.Errorf("%s by %s: %v", name, op, err)
			}
		}
	}
}

func TestNobodyCanCopy(t *testing.T) {
	t.Parallel()
	m := coretest.NewMemory(make([]int32, 8))
	v := open(t, onGPU, m, &core.ViewOptions{Name: "frame", Writable: true})
	_, copied := core.Copy(t.Context(), make([]int32, 6), v)
	_, raw := core.CopyBytes(t.Context(), make([]byte, 24), v)
	_, put := core.Put(t.Context(), v, make([]int32, 6))
	for _, err := range []error{copied, raw, put} {
		if !errors.Is(err, core.ErrDevice) || !strings.Contains(err.Error(), "cuda:0") {
			t.Errorf("%v", err)
		}
	}
	_, sliced := core.Slice[int32](v)
	if !errors.Is(sliced, core.ErrDevice) || !strings.Contains(sliced.Error(), "use Copy") {
		t.Errorf("Slice: %v", sliced)
	}
}

// TestCopyWaits holds that copies wait for a fence, obey their context, and do not keep Close waiting meanwhile.
func TestCopyWaits(t *testing.T) {
	t.Parallel()
	copies := map[string]func(context.Context, *core.View) error{
		"Copy": func(ctx context.Context, v *core.View) error {
			_, err := core.Copy(ctx, make([]int32, 6), v)
			return err
		},
		"CopyBytes": func(ctx context.Context, v *core.View) error {
			_, err := core.CopyBytes(ctx, make([]byte, 24), v)
			return err
		},
		"Put": func(ctx context.Context, v *core.View) error {
			_, err := core.Put(ctx, v, make([]int32, 6))
			return err
		},
	}
	for name, f := range copies {
		m := newFar(make([]int32, 8))
		m.ready = make(chan struct{})
		v := open(t, onGPU, m, &core.ViewOptions{Name: "frame", Writable: true})

		cause := errors.New("the user went home")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- f(ctx, v) }()
		cancel(cause)
		if err := <-ended; core.Category(err) != "canceled" || !errors.Is(err, cause) {
			t.Errorf("%s, canceled: %v", name, err)
		}

		go func() { ended <- f(t.Context(), v) }()
		shut(t, v) // while it waits, or before it begins
		close(m.ready)
		if err := <-ended; !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s, closed meanwhile: %v", name, err)
		}
	}
}

// TestCopyRefusesFirst holds that what is the caller's mistake is said at once, without waiting for the memory.
func TestCopyRefusesFirst(t *testing.T) {
	t.Parallel()
	m := newFar(make([]int32, 8))
	m.ready = make(chan struct{})
	readOnly := open(t, onGPU, m, &core.ViewOptions{Name: "frame"})
	_, small := core.Copy(t.Context(), make([]int32, 5), readOnly)
	_, smallBytes := core.CopyBytes(t.Context(), make([]byte, 23), readOnly)
	_, wrongType := core.Copy(t.Context(), make([]float64, 6), readOnly)
	_, tooMany := core.Put(t.Context(), readOnly, make([]int32, 7))
	_, put := core.Put(t.Context(), readOnly, make([]int32, 6))
	for name, tc := range map[string]struct{ got, want error }{
		"no room": {small, core.ErrLayout}, "no room for bytes": {smallBytes, core.ErrLayout},
		"another type": {wrongType, core.ErrDType}, "too many": {tooMany, core.ErrLayout}, "read-only": {put, core.ErrReadOnly},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	m := coretest.NewMemory(make([]int16, 6))
	v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int16, Shape: []int{4}, Offset: 4}), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, offset, release, err := v.Acquire()
	if err != nil || got != core.Memory(m) || offset != 4 {
		t.Fatalf("%v, %d, %v", got, offset, err)
	}
	_, _, again, err := v.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	shut(t, v) // does not wait, and does not take the memory away
	if m.Closed() != 0 {
		t.Error("the memory is closed while it is acquired")
	}
	release()
	release()
	if m.Closed() != 0 {
		t.Error("releasing twice counts twice")
	}
	again()
	if m.Closed() != 1 {
		t.Errorf("the memory was closed %d times", m.Closed())
	}
	if _, _, release, err := v.Acquire(); !errors.Is(err, core.ErrClosed) || release == nil {
		t.Errorf("after Close: %v", err)
	}
	empty := open(t, core.LayoutSpec{DType: core.Int16, Shape: []int{0}}, nil, nil)
	if got, _, release, err := empty.Acquire(); got != nil || err != nil {
		t.Errorf("without elements: %v, %v", got, err)
	} else {
		release()
	}
}

func TestHold(t *testing.T) { //nolint:paralleltest // it counts allocations
	m := coretest.NewMemory(make([]int16, 6))
	v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int16, Shape: []int{4}, Offset: 4}), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		got, offset, release, err := v.Hold()
		if err != nil || got != core.Memory(m) || offset != 4 {
			t.Fatalf("%v, %d, %v", got, offset, err)
		}
		release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	_, _, release, err := v.Hold()
	if err != nil {
		t.Fatal(err)
	}
	shut(t, v)
	if m.Closed() != 0 {
		t.Error("the memory is closed while it is held")
	}
	release()
	if m.Closed() != 1 {
		t.Errorf("the memory was closed %d times", m.Closed())
	}
	if _, _, release, err := v.Hold(); !errors.Is(err, core.ErrClosed) || release == nil {
		t.Errorf("after Close: %v", err)
	}
}
