package routes

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

const (
	minSlot     = 4 << 10
	slotClasses = 3 // 4, 16 and 64 KiB; larger copies have a file of their own
	slotsPerPad = 64
	granule     = 64 << 10 // sizes of larger files are multiples of it

	warmBytes = 128 << 20 // how much memory is kept for the next copy when it comes back
	warmFiles = 16
)

// Staging is memory for copies of arrays that cannot be shared where they are: sealed memfds. Small
// copies share a file, larger ones have one each. Memory that comes back is used again, so that
// taking the same array time and again needs neither new descriptors nor new pages.
//
// The zero value is ready. All methods are safe for concurrent use.
type Staging struct {
	mu     sync.Mutex
	closed bool
	pads   [slotClasses][]*pad // those with room
	warm   []*memfile          // larger files that came back, oldest first
}

// Copied is an array in staging memory.
type Copied struct {
	Layout  core.Layout // relative to the backing's first byte
	Backing kit.Backing // closing it does nothing
	Drop    func()      // gives the memory back; to be called exactly once

	room *Room
}

// Room is staging memory for one copy.
type Room struct {
	file   *memfile
	offset int64
	size   int64
	drop   func()
}

// Drop gives the memory back, unless a copy has taken it over. It is called at most once.
func (r *Room) Drop() { r.drop() }

// Again copies an array into the memory of a copy of it, in which the copy before is lost. It reports false
// if the new copy would not lie there in the same way.
func (c *Copied) Again(ctx context.Context, a Array) (bool, error) {
	plan, err := planStaging(a)
	if err != nil {
		return false, err
	}
	l, err := at(plan.layout, c.room.offset+int64(plan.layout.Offset()), false)
	if err != nil || plan.size != c.room.size || !l.Equal(c.Layout) {
		return false, err
	}
	return true, c.room.file.take(ctx, plan, c.room.offset)
}

// Take makes what a copy shows that of another copy, which stays as it is. It reports false if that would not lie
// there in the same way, or cannot be done.
func (c *Copied) Take(from *Copied) bool {
	l, err := at(from.Layout, int64(from.Layout.Offset())-from.room.offset+c.room.offset, false)
	if err != nil || from.room.size != c.room.size || !l.Equal(c.Layout) {
		return false
	}
	in, out := from.room.offset, c.room.offset
	ok := true
	shm.Use(c.room.file.file, func() { // both are files of this package's
		for end := in + c.room.size; ok && in < end; {
			n, err := unix.CopyFileRange(int(from.room.file.file.Fd()), &in, int(c.room.file.file.Fd()), &out, int(end-in), 0)
			ok = n > 0 && err == nil
		}
	})
	return ok
}

// Direct says how the copy of an array could be made by one copy of bytes within this process: from, to, and
// how many. ok is false if it cannot.
func (c *Copied) Direct(a Array) (from, to, size uintptr, ok bool) {
	plan, err := planStaging(a)
	if err != nil || plan.axes != nil || c.room.file.mapping == nil {
		return 0, 0, 0, false
	}
	return plan.lo, c.room.file.mapping.Addr() + uintptr(c.room.offset), uintptr(plan.size), true
}

// Copy copies an array of this process, into room, which it takes over, unless that is nil. The copy has the array's strides, unless the array's
// elements are scattered over more than twice the memory that they need: then it is packed in
// row-major order, but for axes that repeat elements.
//
// Memory that is not there is an error that wraps core.ErrPointer. If ctx ends, its error comes
// back within a few milliseconds.
func (s *Staging) Copy(ctx context.Context, a Array, room *Room) (Copied, error) {
	plan, err := planStaging(a)
	if err != nil {
		if room != nil {
			room.Drop()
		}
		return Copied{}, err
	}
	return s.fill(room, plan.layout, plan.size, func(m *memfile, offset int64) error { return m.take(ctx, plan, offset) })
}

// Reserve gets memory for a copy of an array, whose pages are there, so that the copy itself takes less time. The
// array's own pages are fetched as well. It may go away meanwhile.
func (s *Staging) Reserve(a Array) (*Room, error) {
	plan, err := planStaging(a)
	if err != nil {
		return nil, err
	}
	room, err := s.allocate(plan.size)
	if err != nil {
		return nil, err
	}
	if err := room.fetch(); err != nil {
		room.Drop()
		return nil, &core.Error{Op: "stage", Kind: core.ErrUnavailable, Err: os.NewSyscallError("fallocate", err)}
	}
	if plan.axes == nil {
		fetch(plan.lo, uintptr(plan.size))
	}
	return room, nil
}

// fetch gets the pages. Others may use files between two pieces.
func (r *Room) fetch() (err error) {
	const piece = 64 << 20
	for at, end := r.offset, r.offset+r.size; at < end && err == nil; at += piece {
		shm.Use(r.file.file, func() { err = unix.Fallocate(int(r.file.file.Fd()), 0, at, min(piece, end-at)) })
	}
	return err
}

// Put copies an array whose bytes are data, for producers that have made its elements themselves.
// The layout's Offset counts from data's first byte; the error wraps core.ErrLayout if the array
// reaches beyond data.
func (s *Staging) Put(data []byte, l core.Layout) (Copied, error) {
	if lo, hi := l.Span(); lo < 0 || hi > len(data) || len(data) == 0 {
		return Copied{}, &core.Error{
			Op: "stage", Kind: core.ErrLayout,
			Err: fmt.Errorf("bytes %d to %d of %d", lo, hi, len(data)),
		}
	}
	return s.fill(nil, l, int64(len(data)), func(m *memfile, offset int64) (err error) {
		if m.mapping != nil {
			copy(m.mapping.Bytes()[offset:], data)
			return nil
		}
		shm.Use(m.file, func() { _, err = m.file.WriteAt(data, offset) })
		return err
	})
}

// fill makes a copy in room, which it takes over if it has the right size, or else in memory that it gets.
func (s *Staging) fill(room *Room, l core.Layout, size int64, write func(*memfile, int64) error) (_ Copied, err error) {
	if room == nil || room.size != size {
		if room != nil {
			room.Drop()
		}
		if room, err = s.allocate(size); err != nil {
			return Copied{}, err
		}
	}
	err = write(room.file, room.offset)
	if errors.Is(err, unix.EFBIG) {
		err = limited(err)
	}
	if err != nil {
		room.Drop()
		return Copied{}, err
	}
	placed, err := at(l, room.offset+int64(l.Offset()), false)
	if err != nil {
		room.Drop()
		return Copied{}, err
	}
	return Copied{Layout: placed, Backing: room.file, Drop: room.drop, room: room}, nil
}

// Close gives up what is not in use; the rest goes as it is dropped.
func (s *Staging) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, m := range s.warm {
		errs = append(errs, m.end())
	}
	s.warm = nil
	for class, pads := range s.pads {
		s.pads[class] = slices.DeleteFunc(pads, func(p *pad) bool {
			if p.used != 0 {
				return false
			}
			errs = append(errs, p.end())
			return true
		})
	}
	return errors.Join(errs...)
}

func (s *Staging) allocate(size int64) (*Room, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &core.Error{Op: "stage", Kind: core.ErrClosed}
	}
	for class := range slotClasses {
		if size <= slotSize(class) {
			return s.slot(class, size)
		}
	}
	m, err := s.file(roundUp(size))
	if err != nil {
		return nil, err
	}
	return &Room{file: m, size: size, drop: func() { s.keep(m) }}, nil
}

// memfile is one sealed memfd, and the backing of what is copied into it.
type memfile struct {
	file    *os.File
	size    int64
	mapping *shm.Mapping // of small copies; nil: none
}

func newMemfile(size int64) (*memfile, error) {
	if err := checkRoom(size); err != nil {
		return nil, err
	}
	f, err := shm.Create("ndbridge-staging", size)
	if err != nil {
		return nil, limited(err)
	}
	return &memfile{file: f, size: size}, nil
}

// take copies an array to offset. Where the file is mapped, the kernel copies from memory to memory: the descriptor is another
// thread's, which takes time to ask. Some containers forbid that.
func (m *memfile) take(ctx context.Context, plan copyPlan, offset int64) (err error) {
	if m.mapping != nil {
		err = plan.writeTo(ctx, func(v []iovec, at int64) (uintptr, error) { return readv(m.mapping.Bytes()[at:], v) }, offset)
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS) {
			return err
		}
	}
	shm.Use(m.file, func() {
		err = plan.writeTo(ctx, func(v []iovec, at int64) (uintptr, error) { return pwritev(m.file, v, at) }, offset)
	})
	return err
}

// limited says what may keep a process from having files in memory, or from writing them.
func limited(err error) error {
	return &core.Error{
		Op: "stage", Kind: core.ErrUnavailable, Err: err, Remedy: "check the limits on memory, file size and open files",
	}
}

// end closes the file, which no lease names any more.
func (m *memfile) end() error {
	err := shm.Close(m.file)
	if m.mapping != nil {
		err = errors.Join(err, m.mapping.Close())
	}
	return err
}

func (m *memfile) Key() any     { return m }
func (m *memfile) Size() int64  { return m.size }
func (m *memfile) Sealed() bool { return true }
func (m *memfile) Close() error { return nil } // the Staging's business

func (m *memfile) Open(writable bool) (*os.File, error) {
	if writable {
		return nil, fmt.Errorf("%w: a copy", core.ErrReadOnly)
	}
	return shm.ReadOnly(m.file)
}

// roundUp gives the size of file for a copy: four sizes in each doubling, so that copies of similar
// arrays fit the files of earlier ones.
func roundUp(size int64) int64 {
	step := max(granule, int64(1)<<max(bits.Len64(uint64(size-1))-3, 0))
	return (size + step - 1) / step * step
}

func (s *Staging) file(size int64) (*memfile, error) {
	for i, m := range slices.Backward(s.warm) {
		if m.size == size {
			s.warm = slices.Delete(s.warm, i, i+1)
			return m, nil
		}
	}
	m, err := newMemfile(size)
	if err != nil && len(s.warm) > 0 { // they may hold what is missing
		s.endWarm(len(s.warm))
		m, err = newMemfile(size)
	}
	return m, err
}

// endWarm gives the oldest files up that have come back.
func (s *Staging) endWarm(n int) {
	for _, m := range s.warm[:n] {
		_ = m.end() // a memfd has nothing to write back
	}
	s.warm = slices.Delete(s.warm, 0, n)
}

// keep takes a file back, and lets the oldest go if that makes too many.
func (s *Staging) keep(m *memfile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warm = append(s.warm, m)
	var total int64
	for _, m := range s.warm {
		total += m.size
	}
	for len(s.warm) > 0 && (s.closed || total > warmBytes || len(s.warm) > warmFiles) {
		total -= s.warm[0].size
		s.endWarm(1)
	}
}

// pad is a file that is divided into slots of one size.
type pad struct {
	memfile
	class int
	used  uint64 // a bit for each slot
}

func slotSize(class int) int64 { return minSlot << (2 * class) }

func (s *Staging) slot(class int, size int64) (*Room, error) {
	if len(s.pads[class]) == 0 {
		m, err := newMemfile(slotSize(class) * slotsPerPad)
		if err != nil {
			return nil, err
		}
		if m.mapping, err = shm.Map(m.file, m.size, true); err != nil {
			return nil, errors.Join(err, m.end())
		}
		s.pads[class] = []*pad{{memfile: *m, class: class}}
	}
	p := s.pads[class][0]
	i := bits.TrailingZeros64(^p.used)
	p.used |= 1 << i
	if p.used == ^uint64(0) {
		s.pads[class] = s.pads[class][1:]
	}
	return &Room{
		file: &p.memfile, offset: int64(i) * slotSize(class), size: size, drop: func() { s.freeSlot(p, i) },
	}, nil
}

// freeSlot keeps one pad of each class when it becomes empty.
func (s *Staging) freeSlot(p *pad, i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.used == ^uint64(0) {
		s.pads[p.class] = append(s.pads[p.class], p)
	}
	p.used &^= 1 << i
	if p.used == 0 && (s.closed || len(s.pads[p.class]) > 1) {
		s.pads[p.class] = slices.DeleteFunc(s.pads[p.class], func(q *pad) bool { return q == p })
		_ = p.end() // a memfd has nothing to write back
	}
}
