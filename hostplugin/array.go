package hostplugin

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// hostArray is what errors call an array in the host's memory.
const hostArray = "array of the host"

// New makes an array of zeros in the host's own memory: a writable view that can be an argument of the program's functions
// ([Func.Call]) without a copy. The caller closes it, or the session. The program keeps the memory for as long as its own
// objects use it. The error wraps core.ErrLayout, core.ErrDType, core.ErrUnavailable (there is no memory) or
// core.ErrClosed.
func (s *Session) New(dtype core.DType, shape ...int) (*core.View, error) {
	return s.NewOn(core.Device{}, dtype, shape...)
}

// New is [Session.New] for arrays that functions of all the host's programs can be given. They live until they are closed, or
// the host.
func (h *Host) New(dtype core.DType, shape ...int) (*core.View, error) {
	return h.NewOn(core.Device{}, dtype, shape...)
}

// owned is what is closed with a session, or with a host.
type owned struct {
	program string            // the session's, or ""
	gpu     *imports.Importer // makes what is on a GPU

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
}

// wrap says in an error what was done. It wraps core.ErrUnavailable where it was of no category: the system refused something.
func (o *owned) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		e = &core.Error{Kind: core.ErrUnavailable, Err: err}
	}
	about := *e
	about.Op, about.Program, about.Object = op, o.program, hostArray
	return &about
}

// add notes what is open, unless all was closed.
func (o *owned) add(c io.Closer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.open == nil {
		o.open = make(map[io.Closer]struct{})
	}
	o.open[c] = struct{}{}
	return true
}

func (o *owned) remove(c io.Closer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, c)
}

// close closes all. After that no more is opened.
func (o *owned) close() error {
	o.mu.Lock()
	o.closed = true
	open := slices.Collect(maps.Keys(o.open))
	o.mu.Unlock()
	var errs []error
	for _, c := range open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// make makes an array of zeros.
func (o *owned) make(device core.Device, dtype core.DType, shape []int) (*core.View, error) {
	l, err := ownLayout(device, dtype, shape)
	if err != nil {
		return nil, err
	}
	made, err := o.stretch(l)
	if err != nil {
		return nil, err
	}
	return o.view(l, made, made.Close)
}

// ownLayout is that of an array of the host's own.
func ownLayout(device core.Device, dtype core.DType, shape []int) (core.Layout, error) {
	if device != (core.Device{}) && device.Kind != core.CUDA {
		return core.Layout{}, &core.Error{
			Kind: core.ErrDevice, Err: errors.New("no arrays are made on " + device.String()), Remedy: "name a CUDA device",
		}
	}
	return core.NewLayout(core.LayoutSpec{DType: dtype, Shape: shape, Device: device})
}

// stretch makes memory of zeros for arrays with a layout, which ownLayout has made.
func (o *owned) stretch(l core.Layout) (stretch, error) {
	if l.Device() != (core.Device{}) {
		return o.onGPU(l.Device().Index, l.NBytes())
	}
	m, err := arrays.New(l.NBytes())
	if err != nil {
		return nil, &core.Error{Kind: core.ErrUnavailable, Err: err}
	}
	return inHostMemory{m}, nil
}

// view makes a view that is closed with its owner. back is called when the host uses the memory no more, or at once after an error.
func (o *owned) view(l core.Layout, of stretch, back func() error) (*core.View, error) {
	m, err := of.memory(back)
	if err != nil {
		return nil, errors.Join(err, back())
	}
	lend := &lender{owner: o}
	v, err := core.NewView(l, m, &core.ViewOptions{Name: hostArray, Writable: true, Lender: lend})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	lend.view = v
	if !o.add(v) {
		return nil, errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return v, nil
}

// lender lends the host's own memory.
type lender struct {
	owner *owned
	view  *core.View
}

// Live implements core.Lender: what a program writes there is what the view shows.
func (l *lender) Live() bool { return true }

// Release implements core.Lender.
func (l *lender) Release() error {
	l.owner.remove(l.view)
	return nil
}

// stretch is memory of the host's own, which views show one after the other. The methods are safe for concurrent use.
type stretch interface {
	memory(back func() error) (core.Memory, error) // for one view; back is called when the host uses it no more
	Used() bool                                    // by an object of a program
	Close() error
}

// inHostMemory is one that the CPU has.
type inHostMemory struct{ *arrays.Memory }

func (m inHostMemory) memory(back func() error) (core.Memory, error) {
	return viewed{m.Memory, back}, nil
}

// viewed is what a view has of it.
type viewed struct {
	*arrays.Memory
	back func() error
}

// Close implements core.Memory.
func (m viewed) Close() error { return m.back() }

// ownFile gives the file of the host's own memory that m is, or nil.
func ownFile(m core.Memory) *arrays.File {
	switch m := m.(type) {
	case viewed:
		return m.File
	case *imports.Memory:
		return fileOnGPU(m.Own())
	default:
		return nil
	}
}

// Pool has arrays of one dtype and shape in the host's memory, which are used again: to get one costs no system call, and no
// call of a driver. All methods are safe for concurrent use. The caller closes it, or its session, or its host.
type Pool struct {
	owner  *owned
	layout core.Layout

	mu     sync.Mutex
	closed bool
	idle   []stretch // the last is the one that was used last
}

// Pool makes a pool of arrays such as [Session.New] makes. It makes an array when it has none that nobody uses, here or in
// the program.
func (s *Session) Pool(dtype core.DType, shape ...int) (*Pool, error) {
	return s.PoolOn(core.Device{}, dtype, shape...)
}

// PoolOn is [Session.Pool] for arrays such as [Session.NewOn] makes.
func (s *Session) PoolOn(device core.Device, dtype core.DType, shape ...int) (*Pool, error) {
	if err := s.alive("pool", ""); err != nil {
		return nil, err
	}
	return s.arrays.pool(device, dtype, shape)
}

// Pool makes a pool of arrays such as [Host.New] makes.
func (h *Host) Pool(dtype core.DType, shape ...int) (*Pool, error) {
	return h.PoolOn(core.Device{}, dtype, shape...)
}

// PoolOn is [Host.Pool] for arrays such as [Host.NewOn] makes.
func (h *Host) PoolOn(device core.Device, dtype core.DType, shape ...int) (*Pool, error) {
	return h.arrays.pool(device, dtype, shape)
}

func (o *owned) pool(device core.Device, dtype core.DType, shape []int) (*Pool, error) {
	l, err := ownLayout(device, dtype, shape)
	if err != nil {
		return nil, o.wrap("pool", err)
	}
	p := &Pool{owner: o, layout: l}
	if !o.add(p) {
		return nil, o.wrap("pool", &core.Error{Kind: core.ErrClosed})
	}
	return p, nil
}

// Get gives an array. It holds whatever was written there last, or zeros. Closing the view gives the array back; it is used
// again when the host's streams have done what they were given with it, and the program has no object left that uses it.
func (p *Pool) Get() (*core.View, error) {
	of, err := p.take()
	if err != nil {
		return nil, p.owner.wrap("get", err)
	}
	v, err := p.owner.view(p.layout, of, func() error { return p.put(of) })
	return v, p.owner.wrap("get", err)
}

func (p *Pool) take() (stretch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &core.Error{Kind: core.ErrClosed}
	}
	for i, of := range slices.Backward(p.idle) {
		if !of.Used() {
			p.idle = slices.Delete(p.idle, i, i+1)
			return of, nil
		}
	}
	return p.owner.stretch(p.layout)
}

func (p *Pool) put(of stretch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return of.Close() // which Close could not, since it was in use
	}
	p.idle = append(p.idle, of)
	return nil
}

// Close unmaps the arrays that nobody uses, and the others when their views are closed. It is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.closed, p.idle = true, nil
	p.mu.Unlock()
	p.owner.remove(p)
	var errs []error
	for _, of := range idle {
		errs = append(errs, of.Close())
	}
	return errors.Join(errs...)
}
