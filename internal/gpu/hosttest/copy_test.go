//go:build cuda

package hosttest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestCopyStrided: elements cross in row-major order whatever the strides, in both directions, and
// what lies between them stays as it is.
func TestCopyStrided(t *testing.T) {
	t.Parallel()
	r := start(t)
	const rows, columns = 1500, 1000 // more than some pieces
	handle := r.alloc(contract.RouteCUDAIPC, rows*columns*4)
	l := lease(t, handle, r.fill(handle, 0, false), core.Int32, true)
	spec := l.Layout.Spec()
	spec.Shape, spec.Strides = []int{rows, columns}, nil
	l.Layout, _ = core.NewLayout(spec) // as sound as the one before
	v, _ := r.view(l)
	model := make([]int32, rows*columns)
	for i := range model {
		model[i] = int32(i)
	}
	if n, err := core.Put(t.Context(), v, model); err != nil || n != len(model) {
		t.Fatal(n, err)
	}
	for name, derive := range map[string]func() (*core.View, error){
		"all":        func() (*core.View, error) { return v.Sub(0, 0, rows) },
		"transposed": func() (*core.View, error) { return v.Transpose() },
		"column":     func() (*core.View, error) { return v.Select(1, 7) },
		"columns":    func() (*core.View, error) { return v.Sub(1, 100, 103) },
		"rows":       func() (*core.View, error) { return v.Step(0, 7) },
		"reversed":   func() (*core.View, error) { return v.Step(1, -1) },
		"nothing":    func() (*core.View, error) { return v.Sub(1, 5, 5) },
	} {
		part, err := derive()
		if err != nil {
			t.Fatal(err)
		}
		var want []int32
		for offset := range part.Layout().Offsets() {
			want = append(want, int32(offset/4))
		}
		got := make([]int32, part.Len())
		if n, err := core.Copy(t.Context(), got, part); err != nil || n != len(want) || !slices.Equal(got, want) {
			t.Errorf("%s: Copy = %d, %v, or other elements", name, n, err)
		}
		for i := range got {
			got[i] = -got[i]
		}
		if n, err := core.Put(t.Context(), part, got); err != nil || n != len(want) {
			t.Errorf("%s: Put = %d, %v", name, n, err)
		}
		for _, x := range want {
			model[x] = -x
		}
		all := make([]int32, v.Len())
		if _, err := core.Copy(t.Context(), all, v); err != nil || !slices.Equal(all, model) {
			t.Errorf("%s: after Put, %v, or other elements", name, err)
		}
		for i := range model {
			model[i] = int32(i)
		}
		if _, err := core.Put(t.Context(), v, model); err != nil {
			t.Fatal(err)
		}
		part.Close()
	}
}

// TestCopyRefuses: what cannot be copied is said before anything is.
func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAVMM, chunk)
	v, _ := r.view(lease(t, handle, r.fill(handle, 1, false), core.Float32, false))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	closed, err := v.Sub(0, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	_, wrongType := core.Copy(t.Context(), make([]float64, v.Len()), v)
	_, small := core.Copy(t.Context(), make([]float32, v.Len()-1), v)
	_, smallBytes := core.CopyBytes(t.Context(), make([]byte, v.NBytes()-1), v)
	_, late := core.Copy(ended, make([]float32, v.Len()), v)
	_, after := core.Copy(t.Context(), make([]float32, 4), closed)
	_, readOnly := core.Put(t.Context(), v, make([]float32, v.Len()))
	_, putType := core.Put(t.Context(), v, make([]float64, v.Len()))
	for _, c := range []struct {
		what      string
		got, want error
	}{
		{"another type", wrongType, core.ErrDType},
		{"too few elements", small, core.ErrLayout},
		{"too few bytes", smallBytes, core.ErrLayout},
		{"a context that has ended", late, context.Canceled},
		{"a closed view", after, core.ErrClosed},
		{"a read-only view", readOnly, core.ErrReadOnly},
		{"a Put of another type", putType, core.ErrDType},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}
