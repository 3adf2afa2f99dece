package hostplugin

import (
	"context"
	"errors"
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

// owned are the arrays of a session or of a host, which are closed with it.
type owned struct {
	mu     sync.Mutex
	closed bool
	views  map[*lender]*core.View
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
	return o.view(l, hostMemory{m}, func() {})
}

// view makes a view that is closed with its owner. closed is called when the last view of the memory is.
func (o *owned) view(l core.Layout, m core.Memory, closed func()) (*core.View, error) {
	lend := &lender{owner: o, closed: closed}
	v, err := core.NewView(l, m, &core.ViewOptions{Name: hostArray, Writable: true, Lender: lend})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	o.mu.Lock()
	over := o.closed
	if !over {
		if o.views == nil {
			o.views = make(map[*lender]*core.View)
		}
		o.views[lend] = v
	}
	o.mu.Unlock()
	if over {
		return nil, errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return v, nil
}

// close closes all views. After that no more are made.
func (o *owned) close() error {
	o.mu.Lock()
	o.closed = true
	views := make([]*core.View, 0, len(o.views))
	for _, v := range o.views {
		views = append(views, v)
	}
	o.mu.Unlock()
	var errs []error
	for _, v := range views {
		errs = append(errs, v.Close())
	}
	return errors.Join(errs...)
}

// lender lends the host's own memory.
type lender struct {
	owner  *owned
	closed func()
}

// Live implements core.Lender: what a program writes there is what the view shows.
func (l *lender) Live() bool { return true }

// Release implements core.Lender.
func (l *lender) Release() error {
	l.owner.mu.Lock()
	delete(l.owner.views, l)
	l.owner.mu.Unlock()
	l.closed()
	return nil
}

// hostMemory is memory of one view alone.
type hostMemory struct{ *arrays.Memory }

func (m hostMemory) hosts() *arrays.Memory { return m.Memory }

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
	if err := s.own(p); err != nil {
		return nil, err
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
	v, err := p.session.arrays.view(p.layout, pooled{m}, func() { p.put(m) })
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

func (p *Pool) put(m *arrays.Memory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.idle = append(p.idle, m)
		return
	}
	_ = m.Close() // Close has not closed it, since it was in use
}

// Close unmaps the arrays that nobody uses, and the others when their views are closed. It is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.closed, p.idle = true, nil
	p.mu.Unlock()
	p.session.disown(p)
	var errs []error
	for _, m := range idle {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// pooled is memory of a pool, which stays when a view of it is closed.
type pooled struct{ *arrays.Memory }

func (m pooled) hosts() *arrays.Memory { return m.Memory }

// Close implements core.Memory.
func (m pooled) Close() error { return nil }

// own notes a pool, which is closed with the session.
func (s *Session) own(p *Pool) error {
	s.poolsMu.Lock()
	defer s.poolsMu.Unlock()
	if s.poolsClosed {
		return &core.Error{Op: "pool", Program: s.launch.program.Name, Kind: core.ErrClosed}
	}
	if s.pools == nil {
		s.pools = make(map[*Pool]struct{})
	}
	s.pools[p] = struct{}{}
	return nil
}

func (s *Session) disown(p *Pool) {
	s.poolsMu.Lock()
	defer s.poolsMu.Unlock()
	delete(s.pools, p)
}

// closeArrays closes the session's pools and arrays.
func (s *Session) closeArrays() error {
	errs := []error{s.arrays.close()}
	s.poolsMu.Lock()
	s.poolsClosed = true
	none := s.none
	pools := make([]*Pool, 0, len(s.pools))
	for p := range s.pools {
		pools = append(pools, p)
	}
	s.poolsMu.Unlock()
	for _, p := range pools {
		errs = append(errs, p.Close())
	}
	if none != nil {
		errs = append(errs, none.Close())
	}
	return errors.Join(errs...)
}

// nothing gives the number of memory for arrays without elements.
func (s *Session) nothing(ctx context.Context) (uint32, error) {
	s.poolsMu.Lock()
	defer s.poolsMu.Unlock()
	if s.poolsClosed {
		return 0, &core.Error{Kind: core.ErrClosed}
	}
	if s.none == nil {
		var err error
		if s.none, err = arrays.New(1); err != nil {
			return 0, err
		}
	}
	return s.space.Segment(ctx, s.none, false)
}
