package hostplugin

import (
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
)

// hostArray is what errors call an array in the host's memory.
const hostArray = "array of the host"

// New makes an array of zeros in the host's own memory: a writable view that can be an argument of the program's functions
// ([Func.Call]) without a copy. The caller closes it, or the session. The program keeps the memory for as long as its own
// objects use it. The error wraps core.ErrLayout, core.ErrDType, core.ErrUnavailable (there is no memory) or
// core.ErrClosed.
func (s *Session) New(dtype core.DType, shape ...int) (*core.View, error) {
	if err := s.alive("new", ""); err != nil {
		return nil, err
	}
	v, err := s.arrays.make(dtype, shape)
	return v, s.wrap("new", hostArray, err)
}

// New is [Session.New] for arrays that functions of all the host's programs can be given. They live until they are closed, or
// the host.
func (h *Host) New(dtype core.DType, shape ...int) (*core.View, error) {
	v, err := h.arrays.make(dtype, shape)
	if err == nil {
		return v, nil
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		e = &core.Error{Kind: core.ErrUnavailable, Err: err}
	}
	about := *e
	about.Op, about.Object = "new", hostArray
	return nil, &about
}

// owned is what is closed with a session, or with a host.
type owned struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{}
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
func (o *owned) make(dtype core.DType, shape []int) (*core.View, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: dtype, Shape: shape})
	if err != nil {
		return nil, err
	}
	m, err := arrays.New(l.NBytes())
	if err != nil {
		return nil, &core.Error{Kind: core.ErrUnavailable, Err: err}
	}
	return o.view(l, m, func() error { return nil })
}

// view makes a view that is closed with its owner. closed is called when the last view of the memory is.
func (o *owned) view(l core.Layout, m core.Memory, closed func() error) (*core.View, error) {
	lend := &lender{owner: o, closed: closed}
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
	owner  *owned
	view   *core.View
	closed func() error
}

// Live implements core.Lender: what a program writes there is what the view shows.
func (l *lender) Live() bool { return true }

// Release implements core.Lender.
func (l *lender) Release() error {
	l.owner.remove(l.view)
	return l.closed()
}

// hostMemory gives the host's own memory that m is, or nil.
func hostMemory(m core.Memory) *arrays.Memory {
	switch m := m.(type) {
	case *arrays.Memory:
		return m
	case pooled:
		return m.Memory
	default:
		return nil
	}
}

// Pool has arrays of one dtype and shape in the host's memory, which are used again: to get one costs no system call. All
// methods are safe for concurrent use. The caller closes it, or the session.
type Pool struct {
	session *Session
	layout  core.Layout

	mu     sync.Mutex
	closed bool
	idle   []*arrays.Memory // the last is the one that was used last
}

// Pool makes a pool of arrays such as [Session.New] makes. It makes an array when it has none that nobody uses, here or in
// the program.
func (s *Session) Pool(dtype core.DType, shape ...int) (*Pool, error) {
	if err := s.alive("pool", ""); err != nil {
		return nil, err
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: dtype, Shape: shape})
	if err != nil {
		return nil, s.wrap("pool", hostArray, err)
	}
	p := &Pool{session: s, layout: l}
	if !s.arrays.add(p) {
		return nil, s.wrap("pool", hostArray, &core.Error{Kind: core.ErrClosed})
	}
	return p, nil
}

// Get gives an array. It holds whatever was written there last, or zeros. Closing the view gives the array back; it is used
// again when the program has no object left that uses it.
func (p *Pool) Get() (*core.View, error) {
	m, err := p.take()
	if err != nil {
		return nil, p.session.wrap("get", hostArray, err)
	}
	v, err := p.session.arrays.view(p.layout, pooled{m}, func() error { return p.put(m) })
	return v, p.session.wrap("get", hostArray, err)
}

func (p *Pool) take() (*arrays.Memory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &core.Error{Kind: core.ErrClosed}
	}
	for i, m := range slices.Backward(p.idle) {
		if !m.Used() {
			p.idle = slices.Delete(p.idle, i, i+1)
			return m, nil
		}
	}
	m, err := arrays.New(p.layout.NBytes())
	if err != nil {
		return nil, &core.Error{Kind: core.ErrUnavailable, Err: err}
	}
	return m, nil
}

func (p *Pool) put(m *arrays.Memory) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return m.Close() // which Close could not, since it was in use
	}
	p.idle = append(p.idle, m)
	return nil
}

// Close unmaps the arrays that nobody uses, and the others when their views are closed. It is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.closed, p.idle = true, nil
	p.mu.Unlock()
	p.session.arrays.remove(p)
	var errs []error
	for _, m := range idle {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// pooled is memory of a pool, which stays when a view of it is closed.
type pooled struct{ *arrays.Memory }

// Close implements core.Memory.
func (m pooled) Close() error { return nil }
