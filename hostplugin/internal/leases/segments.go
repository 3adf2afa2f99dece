package leases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/internal/reuse"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Memory that no view uses stays mapped for idleTime. A mapping keeps the program from freeing the memory, so
// their number and size are limited.
const (
	idleTime  = 5 * time.Second
	idleCount = 64
	idleBytes = 1 << 30
)

// Segments maps the segments of one producer into this process: each once, shared by all views of it, and kept for
// a while after the last one, so that looking at an array again and again costs no mapping. All methods are safe for
// concurrent use.
type Segments struct {
	producer shm.Describer
	strict   bool // only memory that cannot shrink is mapped
	mappings *reuse.Cache[key, *segmentMemory]
}

// key names a mapping. A writable one is never used for views that may not write.
type key struct {
	id       contract.SegmentID
	writable bool
}

// segmentMemory is one mapping, a core.Memory that its users share.
type segmentMemory struct {
	*shm.Mapping
	entry    *reuse.Entry[key, *segmentMemory]
	segments *Segments
	whole    *part // what was mapped first

	mu      sync.Mutex
	parts   []*part // that lie in other files since, the latest last
	holders int
}

// part is a part of a mapping that lies in one segment.
type part struct {
	segment contract.Segment
	shift   int64 // from the segment's first byte to the mapping's: where the former is in the latter
	lo, hi  int64 // the bytes of the mapping

	mu   sync.Mutex
	file *arrays.File // to give to other programs; nil: none has asked for it
}

// NewSegments returns a cache without mappings. A strict one maps only memory that cannot shrink. The caller must
// close it.
func NewSegments(producer shm.Describer, strict bool) *Segments {
	limits := reuse.Limits{Time: idleTime, Count: idleCount, Bytes: idleBytes}
	if os.Getenv("NDBRIDGE_GUARD") == "1" { // memory must become inaccessible with the last view of it
		limits.Time = 0
	}
	return &Segments{producer: producer, strict: strict, mappings: reuse.New[key, *segmentMemory](limits)}
}

// Close unmaps the memory that no view uses. The rest is unmapped with its last view. It is idempotent.
func (c *Segments) Close() error { return c.mappings.Close() }

// use returns the memory of a segment that a standing lease names. Each caller closes it once. The cache checks what
// the producer said about the segment: an error that wraps core.ErrProtocol or core.ErrPointer means that it lied. One
// that wraps core.ErrNotShared means that the cache is strict and the memory could shrink.
func (c *Segments) use(ctx context.Context, s contract.Segment, writable bool) (*segmentMemory, error) {
	return c.mappings.Use(ctx, key{s.ID, writable}, s.Size, func(e *reuse.Entry[key, *segmentMemory]) (*segmentMemory, error) {
		mapping, err := c.open(ctx, s, writable)
		if err != nil {
			return nil, err
		}
		return &segmentMemory{Mapping: mapping, entry: e, segments: c, whole: &part{segment: s, hi: s.Size}}, nil
	})
}

func (c *Segments) open(ctx context.Context, s contract.Segment, writable bool) (*shm.Mapping, error) {
	if c.strict && !s.Sealed {
		return nil, &core.Error{
			Op: "map", Kind: core.ErrNotShared, Reason: contract.ReasonMappedFile,
			Err:    fmt.Errorf("segment %d could shrink", s.ID),
			Remedy: `set mapped_files = "share" if the plugin cannot copy`,
		}
	}
	file, err := c.descriptor(ctx, s, writable)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	mapping, err := shm.Map(file, s.Size, writable)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", s.ID, err)
	}
	return mapping, nil
}

// descriptor gives the file of a segment, which is sealed if the producer says so.
func (c *Segments) descriptor(ctx context.Context, s contract.Segment, writable bool) (*os.File, error) {
	file, err := c.producer.Descriptor(ctx, s.ID, writable)
	if err != nil {
		return nil, err
	}
	if err := sealed(s, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sealed holds that the file of a segment is sealed if the producer says so.
func sealed(s contract.Segment, file *os.File) error {
	if !s.Sealed {
		return nil
	}
	is, err := shm.Sealed(file)
	switch {
	case err != nil:
		return violation("segment %d: %w", s.ID, err)
	case !is:
		return violation("segment %d was said to be sealed, and could shrink", s.ID)
	}
	return nil
}

// Lendable gives a view's memory for another program to map, and where the view's elements are in it; nil if it is nobody's. The view stays
// open meanwhile. The error wraps core.ErrNotShared if the file could shrink, which would kill who reads it,
// core.ErrUnavailable if the program that has it is gone, and core.ErrUnsupported for memory on a GPU that only two processes can share.
func Lendable(ctx context.Context, m core.Memory, v *core.View) (file *arrays.File, l core.Layout, err error) {
	l = v.Layout()
	if onGPU, ok := m.(*imports.Memory); ok {
		file, err := onGPU.Lend(ctx, calls.MaxChunks, func(h contract.Handle, files []*os.File) io.Closer { return arrays.OnGPU(h, files...) })
		if err != nil {
			return nil, l, gone(err)
		}
		return file.(*arrays.File), l, nil //nolint:errcheck,forcetypeassert // made so
	}
	s, ok := m.(*segmentMemory)
	if !ok {
		return nil, l, nil
	}
	p := s.partOf(l)
	if !p.segment.Sealed {
		return nil, l, &core.Error{
			Kind: core.ErrNotShared, Reason: contract.ReasonMappedFile,
			Err:    errors.New("the view shows a file that could shrink, which would kill the program that is called"),
			Remedy: `copy it into an array of Session.New, or set mapped_files = "copy" for the program that maps the file`,
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		file, err := s.segments.descriptor(ctx, p.segment, s.Writable())
		if err != nil {
			return nil, l, gone(err)
		}
		p.file = arrays.NewFile(file, p.segment.Size)
	}
	l, err = at(l, l.Offset()-int(p.shift))
	return p.file, l, err
}

// gone says what it means for memory that is to be lent that its program is gone.
func gone(err error) error {
	if !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return &core.Error{
		Kind: core.ErrUnavailable, Err: fmt.Errorf("the program whose memory it is can hand it over no more: %w", err),
		Remedy: "copy it into an array of the host's, and pass that",
	}
}

func violation(format string, args ...any) error {
	return &core.Error{Op: "map", Kind: core.ErrProtocol, Err: fmt.Errorf(format, args...)}
}

// Close implements core.Memory: it ends one use.
func (m *segmentMemory) Close() error { return m.entry.Release() }

// End implements reuse.Resource.
func (m *segmentMemory) End() error {
	err := m.whole.close()
	for _, p := range m.parts {
		err = errors.Join(err, p.close())
	}
	return errors.Join(err, m.Mapping.Close())
}

func (p *part) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
