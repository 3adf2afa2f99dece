package core

import "fmt"

// Sub returns a view of the elements lo up to, but not including, hi of one axis: see [Layout.Sub]. It shares the
// memory and is closed independently.
func (v *View) Sub(axis, lo, hi int) (*View, error) {
	return v.derive("sub", func(l Layout) (Layout, error) { return l.Sub(axis, lo, hi) })
}

// Select returns a view of one element of one axis, without that axis: see [Layout.Select]. It shares the memory
// and is closed independently.
func (v *View) Select(axis, index int) (*View, error) {
	return v.derive("select", func(l Layout) (Layout, error) { return l.Select(axis, index) })
}

// Step returns a view of every step-th element of one axis, backwards if step is negative: see [Layout.Step]. It
// shares the memory and is closed independently.
func (v *View) Step(axis, step int) (*View, error) {
	return v.derive("step", func(l Layout) (Layout, error) { return l.Step(axis, step) })
}

// Transpose returns a view with permuted axes: see [Layout.Transpose]. It shares the memory and is closed
// independently.
func (v *View) Transpose(perm ...int) (*View, error) {
	return v.derive("transpose", func(l Layout) (Layout, error) { return l.Transpose(perm...) })
}

// As returns a view of the same bytes as elements of another type: see [Layout.As]. It shares the memory and is
// closed independently.
func (v *View) As(d DType) (*View, error) {
	return v.derive("as", func(l Layout) (Layout, error) { return l.As(d) })
}

// AsReadOnly returns a view of the same elements that is not writable: Put and Set through it, and through what is derived from
// it, are ErrReadOnly, and as an argument of a program's function it is mapped for reading only. Where v itself is
// writable, nothing catches a write into a slice of it. It shares the memory and is closed independently.
func (v *View) AsReadOnly() (*View, error) {
	return v.derive("as read-only", func(l Layout) (Layout, error) {
		l.readOnly = true
		return l, nil
	})
}

// derive makes a further view of the memory. The read lock keeps v, and so the memory, open
// meanwhile.
func (v *View) derive(op string, f func(Layout) (Layout, error)) (*View, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.open.Load() {
		return nil, v.fail(op, ErrClosed, nil)
	}
	l, err := f(v.layout)
	if err != nil {
		return nil, v.wrap(op, err)
	}
	v.root.users.Add(1)
	w := &View{layout: l, root: v.root, derived: true}
	w.observe(1)
	w.open.Store(true)
	return w, nil
}

// As describes the same bytes as elements of type d. It gives a meaning to an opaque type, or shows the bits of
// numbers. The result has no tag. If the sizes of the elements differ, As divides the bytes of the innermost axis
// anew; the elements along it must be dense. The error wraps ErrDType if the bytes do not come out even, and for
// packed types, whose bytes [View.Bytes] gives.
func (l Layout) As(d DType) (Layout, error) {
	refuse := func(format string, args ...any) (Layout, error) {
		return Layout{}, &Error{Op: "as", Kind: ErrDType, Err: fmt.Errorf(format, args...)}
	}
	from, to := l.dtype.Size(), d.Size()
	m := l
	m.dtype, m.tag = d, ""
	switch {
	case !d.Valid() || !l.dtype.Valid():
		return refuse("%v as %v", l.dtype, d)
	case d == l.dtype:
		return m, nil
	case from == 0 || to == 0:
		return refuse("%v as %v: elements that share bytes", l.dtype, d)
	case from == to:
		return m, nil
	case len(l.shape) == 0:
		return refuse("one %v as %v: %d bytes are not %d", l.dtype, d, from, to)
	}
	last := len(l.shape) - 1
	if l.shape[last] > 1 && l.strides[last] != from {
		return refuse("%v as %v: the innermost axis is not dense, its stride is %d",
			l.dtype, d, l.strides[last])
	}
	size := l.shape[last] * from
	if size%to != 0 {
		return refuse("%v as %v: %d bytes along the innermost axis", l.dtype, d, size)
	}
	m.shape = l.with(last, size/to)
	m.strides = append([]int{}, l.strides...)
	m.strides[last] = to
	return m.derive(m.shape, m.strides, last, 0), nil
}
