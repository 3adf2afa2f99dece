package cuda

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// Dim3 is an extent along x, y and z, as CUDA's dim3. Trailing zeros count as 1, so Dim3{64} means 64 x 1 x 1.
type Dim3 [3]uint32

// LaunchConfig is how a kernel is launched: the dimensions that cuLaunchKernel takes. Grid and Block have no
// default: [Function.Launch] refuses a config in which either is zero.
type LaunchConfig struct {
	Grid        Dim3   // blocks in the grid
	Block       Dim3   // threads in each block
	SharedBytes uint32 // dynamic shared memory of each block
}

// Input is a view that a kernel only reads: see [In].
type Input struct{ view *core.View }

// In states that the kernel only reads the view. [Function.Launch] takes a view that is not writable in no other way: it
// cannot know what a kernel writes, and the driver does not protect the memory of routes cuda-ipc and cuda-pool.
func In(v *core.View) Input { return Input{v} }

// viewOf returns the view of an argument that is one, and whether the kernel only reads it.
func viewOf(arg any) (v *core.View, input, ok bool) {
	if in, ok := arg.(Input); ok {
		return in.view, true, true
	}
	v, ok = arg.(*core.View)
	return v, false, ok
}

// Launch gives the kernel to a stream, and does not wait for it. The arguments are views and scalars, one
// for each parameter of the kernel. A view that is not writable is passed as [In](view).
//
// A view passes the address of its first element: the element with index [0, ..., 0], which does not have
// the lowest address if a stride is negative. A view without elements passes 0. The view's memory must be
// that of the stream's device, or host memory that the driver knows: pinned (see [Pin]) or managed. The
// kernel waits until each view is ready, as [Stream.Wait] does.
//
// A kernel that writes to an input of route cuda-vmm all the same faults, and the fault ends the context. By the
// other routes the program sees what it wrote.
//
// A scalar has the type of its parameter: bool, int8 to int64, uint8 to uint64, uintptr, float32, float64,
// core.F16, core.BF16 or complex64. Launch refuses int and uint, whose size is not fixed.
//
// The caller may close the views as soon as Launch returns: the memory of a program stays until the kernel
// is done. The caller unpins the memory of a Pin after that.
//
// The errors name the argument, counted from 0. They wrap core.ErrConfig (the arguments do not fit the
// kernel, or the config does not fit the device), core.ErrReadOnly (see [In]), core.ErrDevice (the kernel cannot reach the memory),
// core.ErrUnavailable (the program that owns the memory is gone, or hundreds of operations on the stream wait for a
// program already), or core.ErrClosed.
func (f *Function) Launch(s *Stream, c LaunchConfig, args ...any) error {
	const op = "launch"
	if s.stream.Device() != f.module.primary.Device {
		return &core.Error{
			Op: op, Object: f.name, Kind: core.ErrDevice,
			Err:    fmt.Errorf("a stream of device %d and a function of device %d", s.stream.Device(), f.module.primary.Device),
			Remedy: "load the module on the stream's device",
		}
	}
	if f.params != nil && len(args) != len(f.params) {
		return &core.Error{
			Op: op, Object: f.name, Kind: core.ErrConfig,
			Err: fmt.Errorf("%d arguments for %d parameters", len(args), len(f.params)),
		}
	}
	l := launch{stream: s.stream, function: f, args: args, words: make([]uint64, len(args))}
	l.find()
	err := s.stream.Give(func() error {
		return f.module.use(func() error {
			release, err := l.hold()
			if err != nil {
				return err
			}
			defer release()
			if err := l.pass(); err != nil {
				return err
			}
			return l.start(c)
		})
	})
	if err != nil {
		return about(op, f.name, err)
	}
	return nil
}

// start gives the kernel to the stream. The driver checks the dimensions.
func (l *launch) start(c LaunchConfig) error {
	grid, block := dim(c.Grid), dim(c.Block)
	err := driver.LaunchKernel(l.function.handle, grid, block, int(c.SharedBytes), l.stream.Handle, l.words)
	if d, ok := errors.AsType[*driver.Error](err); ok && d.Code == driver.InvalidValue {
		return &core.Error{
			Kind:   core.ErrConfig,
			Err:    fmt.Errorf("grid %v, block %v, %d bytes of shared memory: %w", grid, block, c.SharedBytes, err),
			Remedy: "set Grid and Block of the LaunchConfig to numbers that the device allows",
		}
	}
	return err
}

// dim fills in the trailing ones. What is all zeros stays so, and the driver refuses it.
func dim(d Dim3) driver.Dim {
	for axis := 2; axis > 0 && d[axis] == 0 && d[0] != 0; axis-- {
		d[axis] = 1
	}
	return driver.Dim{X: int(d[0]), Y: int(d[1]), Z: int(d[2])}
}

// launch is one call of Launch.
type launch struct {
	stream   *imports.Stream
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

// find collects the views among the arguments.
func (l *launch) find() {
	for i, arg := range l.args {
		v, _, ok := viewOf(arg)
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

// pass converts the arguments to words.
func (l *launch) pass() error {
	for i, arg := range l.args {
		v, input, isView := viewOf(arg)
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
		if !input && !v.Writable() {
			return l.wrong(i, v.Name(), &core.Error{
				Kind: core.ErrReadOnly, Err: errors.New("the kernel could write to it"),
				Remedy: "pass cuda.In(view) to a kernel that only reads it, or take a writable view",
			})
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

// reach returns the address of a view's element 0 for the kernel, and makes the stream wait for the
// memory.
func (l *launch) reach(v *core.View, m core.Memory, offset int) (uintptr, error) {
	if m == nil || v.Len() == 0 {
		return 0, nil //nolint:nilnil // an array without elements has no address
	}
	if imported, ok := m.(*imports.Memory); ok {
		if imported.Device() != l.stream.Device() {
			return 0, &core.Error{
				Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v, and a kernel on cuda:%d", v.Device(), l.stream.Device()),
				Remedy: "use a stream and a module of that device",
			}
		}
		return m.Addr() + uintptr(offset), l.stream.Await(imported)
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

// known returns the address of a byte in the current context. For host memory it also returns the end
// of the memory that was pinned together, or 0 if the driver does not report that.
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

// wrong names the argument in an error.
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
