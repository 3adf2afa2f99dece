// Package hostarrays shows memory of the host to Python: it maps segments of the host, and makes objects that stand for
// arrays in them, which [engine.Program.Import] gives to a framework.
//
// An object of Python, a tensor of DLPack, or an array of a framework that was made of them keeps the segment mapped as
// long as it uses it, and is counted in a word of shared memory meanwhile. The last user may end on any thread, and
// after the interpreter has ended. The word never counts what a forked child has inherited: the child goes on to see
// the memory, whatever the host uses it for.
package hostarrays

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Segment is a segment of the host's, mapped in this process. All methods are safe for concurrent use.
type Segment struct {
	memory   *py.HostMemory
	size     int64
	writable bool
	gpu      *onGPU // nil: it is host memory
}

// Map maps the first size bytes of f, for reading, and for writing if writable is true. The segment outlives f, which
// stays the caller's. Errors are those of [shm.Map].
func Map(f *os.File, size int64, writable bool) (*Segment, error) {
	m, err := shm.Map(f, size, writable)
	if err != nil {
		return nil, err
	}
	return &Segment{memory: py.NewHostMemory(m.Addr(), size), size: size, writable: writable}, nil // which unmaps it in m's place
}

// Size gives the number of bytes mapped.
func (s *Segment) Size() int64 { return s.size }

// Addr gives the address of its first byte.
func (s *Segment) Addr() uintptr { return s.memory.Addr() }

// Close ends the segment for new arrays. It is unmapped when no array in it is in use any more. Close is idempotent.
func (s *Segment) Close() error {
	if s.gpu != nil {
		s.gpu.close()
		return nil
	}
	s.memory.Close()
	return nil
}

// Read gives a copy of n bytes of the segment. The error wraps [core.ErrPointer] if it does not have them.
func (s *Segment) Read(offset, n int) ([]byte, error) {
	if s.gpu != nil || offset < 0 || n < 0 || int64(offset) > s.size-int64(n) {
		return nil, exportError(core.ErrPointer, "bytes %d to %d of a segment of %d", offset, offset+n, s.size)
	}
	return s.memory.Read(offset, n)
}

// Export makes a host array: an object that stands for the array that l describes in the segment. It speaks DLPack, the
// array interface and, as far as there is a format for the elements, the buffer protocol. The array is read-only if
// readOnly is true, or the layout or the mapping say so.
//
// held, if it is not nil, is increased now, and decreased when neither the object, nor a tensor of DLPack or anything
// else that was made of it, uses the memory any more. It must stay mapped until then: in the segment itself, or for good.
// Of memory on a GPU it is 1 from [Segment.Over] on, if arrays are in use then, until the GPU has done what it was given
// before the last one ended.
//
// Errors wrap [core.ErrClosed] after Close, [core.ErrPointer] for a layout that does not lie in the segment,
// [core.ErrDevice] for a layout on a GPU if the segment is not, or the reverse, and [core.ErrDType] for elements that share bytes.
func (s *Segment) Export(g *py.GIL, l core.Layout, readOnly bool, held *atomic.Uint32) (py.Object, error) {
	if s.gpu != nil {
		var err error
		if l, err = s.gpu.export(l); err != nil {
			return 0, err
		}
		held = nil
	}
	lo, hi := l.Span()
	switch {
	case s.gpu == nil && l.Device().Kind != core.CPU:
		return 0, exportError(core.ErrDevice, "the array is on %v", l.Device())
	case l.DType().Size() == 0:
		return 0, exportError(core.ErrDType, "elements of %v share bytes", l.DType())
	case lo < 0 || int64(hi) > s.size:
		return 0, exportError(core.ErrPointer, "the array has bytes %d to %d of a segment of %d", lo, hi, s.size)
	}
	return g.NewHostArray(s.memory, &py.HostArray{
		Layout: l, ReadOnly: readOnly || l.ReadOnly() || !s.writable,
		Format: cai.Format(l.DType()), Typestr: cai.Typestr(l.DType()), Held: held,
	})
}

func exportError(kind error, format string, args ...any) error {
	return &core.Error{Op: "export", Kind: kind, Err: fmt.Errorf(format, args...)}
}
