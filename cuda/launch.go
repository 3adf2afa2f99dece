package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// Grid says how many threads run a kernel. Numbers that are 0 count as 1.
type Grid struct {
	Blocks  [3]int // of the grid, along x, y and z
	Threads [3]int // of each block
	Shared  int    // bytes of dynamic shared memory of each block
}

// Launch gives a kernel to a stream, and does not wait for it. Arguments are views and scalars, one for
// each parameter of the kernel.
//
// A view stands for the address of its first element (that with index [0, ..., 0], which is not the
// lowest address if a stride is negative; 0 if it has no elements). Its memory must be that of the
// stream's device, or of the host and known to the driver: pinned, managed, or given to it by [Pin].
// The kernel waits for what must have happened before each view may be touched, as [Stream.Wait] does.
// Launch cannot see whether it writes: a view that is not writable may be passed, and a kernel that
// writes to it faults, which ends the context. (Only memory of route cuda-vmm is protected so; the driver
// cannot do it for cuda-ipc and cuda-pool.)
//
// A scalar has the type of its parameter: bool, int8 to int64, uint8 to uint64, uintptr, float32,
// float64, core.F16, core.BF16 or complex64; int and uint have no fixed size and are refused.
//
// The views may be closed at once: their memory stays until the kernel is done (see
// [Importer.Memory]). Host memory given by Pin stays until it is given back, which must be after that.
//
// The errors name the argument, counted from 0. They wrap core.ErrConfig (the arguments do not fit the
// kernel, or the grid does not fit the device), core.ErrDevice (memory that the kernel cannot reach),
// core.ErrUnavailable (a program whose memory it is has gone), or core.ErrClosed.
func Launch(s *Stream, f *Function, g Grid, args ...any) error {
	const op = "launch"
	if s.gpu.Device != f.module.gpu.Device {
		return &core.Error{
			Op: op, Array: f.name, Kind: core.ErrDevice,
			Err: fmt.Errorf("a stream of device %d and a function of device %d", s.gpu.Device, f.module.gpu.Device),
		}
	}
	if f.params != nil && len(args) != len(f.params) {
		return &core.Error{
			Op: op, Array: f.name, Kind: core.ErrConfig,
			Err: fmt.Errorf("%d arguments for %d parameters", len(args), len(f.params)),
		}
	}
	l := launch{stream: s, function: f, words: make([]uint64, len(args))}
	err := s.enqueue(func() error {
		return f.module.use(func() error {
			return l.pass(args, 0, func() error {
				return l.start(g)
			})
		})
	})
	if err != nil {
		return about(op, f.name, err)
	}
	return nil
}

// start gives the kernel to the stream. The driver checks the grid, but takes it for unsigned.
func (l *launch) start(g Grid) error {
	unfit := func(err error) error {
		return &core.Error{Kind: core.ErrConfig, Err: fmt.Errorf("grid %+v: %w", g, err)}
	}
	if slices.Min(append(append(g.Blocks[:], g.Threads[:]...), g.Shared)) < 0 {
		return unfit(errors.New("a negative number"))
	}
	err := driver.LaunchKernel(l.function.handle, dim(g.Blocks), dim(g.Threads), g.Shared, l.stream.handle, l.words)
	if d, ok := errors.AsType[*driver.Error](err); ok && d.Code == driver.InvalidValue {
		return unfit(err)
	}
	return err
}

func dim(n [3]int) driver.Dim {
	return driver.Dim{X: cmp.Or(n[0], 1), Y: cmp.Or(n[1], 1), Z: cmp.Or(n[2], 1)}
}

// launch is one call of Launch.
type launch struct {
	stream   *Stream
	function *Function
	words    []uint64 // the arguments as the driver takes them
}

// pass makes words of the arguments from number i on, and calls f while no view among them can be
// closed.
func (l *launch) pass(args []any, i int, f func() error) error {
	for ; i < len(args); i++ {
		if v, ok := args[i].(*core.View); ok {
			return l.passView(v, args, i, f)
		}
		word, size, err := scalar(args[i])
		if err != nil {
			return l.wrong(i, "", err)
		}
		l.words[i] = word
		if err := l.checkSize(i, size); err != nil {
			return err
		}
	}
	return f()
}

// passView is pass for a view, which is used once however often it is passed: to use it again could
// wait for who wants to close it, who waits for the first use.
func (l *launch) passView(v *core.View, args []any, i int, f func() error) error {
	if v == nil {
		return l.wrong(i, "", &core.Error{Kind: core.ErrConfig, Err: errors.New("a nil view")})
	}
	if err := l.checkSize(i, 8); err != nil {
		return err
	}
	for before := range i {
		if args[before] == any(v) {
			l.words[i] = l.words[before]
			return l.pass(args, i+1, f)
		}
	}
	passed := false
	err := v.Use(func(m core.Memory, offset int) error {
		addr, err := l.reach(v, m, offset)
		if err != nil {
			return l.wrong(i, v.Name(), err)
		}
		l.words[i] = uint64(addr)
		passed = true
		return l.pass(args, i+1, f)
	})
	if err != nil && !passed && errors.Is(err, core.ErrClosed) {
		return l.wrong(i, v.Name(), err)
	}
	return err
}

// reach gives the address that the kernel finds a view's element 0 at, and lets the stream wait for it.
func (l *launch) reach(v *core.View, m core.Memory, offset int) (uintptr, error) {
	if m == nil || v.Len() == 0 {
		return 0, nil //nolint:nilnil // an array without elements has no address
	}
	if imported, ok := m.(*memory); ok {
		if imported.gpu.Device != l.stream.gpu.Device {
			return 0, &core.Error{
				Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v, and a kernel on cuda:%d", v.Device(), l.stream.gpu.Device),
				Remedy: "use a stream and a module of that device",
			}
		}
		return m.Addr() + uintptr(offset), l.stream.waitFor(m)
	}
	lo, hi := v.Span()
	first, err := known(v, m.Addr()+uintptr(lo))
	if err != nil {
		return 0, err
	}
	last, err := known(v, m.Addr()+uintptr(hi-1))
	if err != nil {
		return 0, err
	}
	if last-first != uintptr(hi-1-lo) {
		return 0, &core.Error{
			Kind: core.ErrDevice, Err: errors.New("its pages are not one stretch of memory for the GPU"),
			Remedy: "pin all of it with one cuda.Pin",
		}
	}
	return first + uintptr(offset-lo), nil
}

// known gives the address that the current context reaches a byte of host memory at.
func known(v *core.View, addr uintptr) (uintptr, error) {
	a, err := driver.PointerAttributes(addr)
	if err != nil {
		return 0, err
	}
	if a.Type == driver.NoMemory || a.DevicePointer == 0 {
		return 0, &core.Error{
			Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v that the CUDA driver does not know", v.Device()),
			Remedy: "make it known with cuda.Pin, or copy it to the GPU",
		}
	}
	return a.DevicePointer, nil
}

// checkSize refuses an argument of another size than its parameter's.
func (l *launch) checkSize(i, size int) error {
	if l.function.params == nil || l.function.params[i] == size {
		return nil
	}
	return l.wrong(i, "", &core.Error{
		Kind: core.ErrConfig, Err: fmt.Errorf("%d bytes for a parameter of %d", size, l.function.params[i]),
	})
}

// wrong says which argument an error is about.
func (l *launch) wrong(i int, view string, err error) error {
	what := fmt.Sprintf("argument %d", i)
	if view != "" {
		what += fmt.Sprintf(" (view %q)", view)
	}
	out := &core.Error{Kind: core.ErrUnavailable, Err: fmt.Errorf("%s: %w", what, err)}
	if e, ok := errors.AsType[*core.Error](err); ok {
		cause := *e
		out.Kind, out.Remedy = e.Kind, e.Remedy
		if cause.Err != nil {
			out.Err = fmt.Errorf("%s: %w", what, cause.Err)
		}
	} else if d, ok := errors.AsType[*driver.Error](err); ok {
		out.Kind = d.Kind()
	}
	return out
}
