package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"math"

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
			Op: op, Object: f.name, Kind: core.ErrDevice,
			Err:    fmt.Errorf("a stream of device %d and a function of device %d", s.gpu.Device, f.module.gpu.Device),
			Remedy: "load the module on the stream's device",
		}
	}
	if f.params != nil && len(args) != len(f.params) {
		return &core.Error{
			Op: op, Object: f.name, Kind: core.ErrConfig,
			Err: fmt.Errorf("%d arguments for %d parameters", len(args), len(f.params)),
		}
	}
	l := launch{stream: s, function: f, args: args, words: make([]uint64, len(args))}
	l.find()
	err := s.enqueue(func() error {
		return f.module.use(func() error {
			release, err := l.hold()
			if err != nil {
				return err
			}
			defer release()
			if err := l.pass(); err != nil {
				return err
			}
			return l.start(g)
		})
	})
	if err != nil {
		return about(op, f.name, err)
	}
	return nil
}

// start gives the kernel to the stream. The driver checks the grid, but takes its low 32 bits.
func (l *launch) start(g Grid) error {
	unfit := func(err error) error {
		return &core.Error{Kind: core.ErrConfig, Err: fmt.Errorf("grid %+v: %w", g, err)}
	}
	for _, n := range append(append(g.Blocks[:], g.Threads[:]...), g.Shared) {
		if n < 0 || n > math.MaxInt32 {
			return unfit(fmt.Errorf("%d is no number of the driver's", n))
		}
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
	args     []any
	words    []uint64 // the arguments as the driver takes them
	views    []argument
}

// argument is a view among the arguments, once however often it is passed.
type argument struct {
	view   *core.View
	first  int // where it is passed first
	memory core.Memory
	offset int
}

// find finds the views among the arguments.
func (l *launch) find() {
	for i, arg := range l.args {
		v, ok := arg.(*core.View)
		if ok && v != nil && l.argument(v) == nil {
			l.views = append(l.views, argument{view: v, first: i})
		}
	}
}

func (l *launch) argument(v *core.View) *argument {
	for i := range l.views {
		if l.views[i].view == v {
			return &l.views[i]
		}
	}
	return nil
}

// hold gets the memory of all views, which stays until release is called.
func (l *launch) hold() (release func(), err error) {
	var releases []func()
	release = func() {
		for _, f := range releases {
			f()
		}
	}
	for i := range l.views {
		a := &l.views[i]
		memory, offset, done, err := a.view.Acquire()
		if err != nil {
			release()
			return nil, l.wrong(a.first, a.view.Name(), err)
		}
		a.memory, a.offset = memory, offset
		releases = append(releases, done)
	}
	return release, nil
}

// pass makes words of the arguments.
func (l *launch) pass() error {
	for i, arg := range l.args {
		v, isView := arg.(*core.View)
		if !isView {
			word, size, err := scalar(arg)
			if err != nil {
				return l.wrong(i, "", err)
			}
			if err := l.checkSize(i, size); err != nil {
				return err
			}
			l.words[i] = word
			continue
		}
		if v == nil {
			return l.wrong(i, "", &core.Error{Kind: core.ErrConfig, Err: errors.New("a nil view")})
		}
		if err := l.checkSize(i, 8); err != nil {
			return err
		}
		a := l.argument(v)
		if a.first < i {
			l.words[i] = l.words[a.first]
			continue
		}
		addr, err := l.reach(v, a.memory, a.offset)
		if err != nil {
			return l.wrong(i, v.Name(), err)
		}
		l.words[i] = uint64(addr)
	}
	return nil
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
	first, end, err := known(v, m.Addr()+uintptr(lo))
	if err != nil {
		return 0, err
	}
	last, _, err := known(v, m.Addr()+uintptr(hi-1))
	if err != nil {
		return 0, err
	}
	if last-first != uintptr(hi-1-lo) || end != 0 && last >= end {
		return 0, &core.Error{
			Kind: core.ErrDevice, Err: errors.New("its pages are not one stretch of memory for the GPU"),
			Remedy: "pin all of it with one cuda.Pin",
		}
	}
	return first + uintptr(offset-lo), nil
}

// known gives the address that the current context reaches a byte at, and, of host memory, that of the end
// of what was pinned with it; 0 if the driver does not say that.
func known(v *core.View, host uintptr) (addr, end uintptr, err error) {
	a, err := driver.PointerAttributes(host)
	if err != nil {
		return 0, 0, err
	}
	if a.Type == driver.NoMemory || a.DevicePointer == 0 {
		return 0, 0, &core.Error{
			Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v that the CUDA driver does not know", v.Device()),
			Remedy: "make it known with cuda.Pin, or copy it to the GPU",
		}
	}
	if a.Type == driver.HostMemory {
		if base, size, err := driver.MemGetAddressRange(a.DevicePointer); err == nil && base != 0 {
			end = base + uintptr(size)
		}
	}
	return a.DevicePointer, end, nil
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
