package leases

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/reuse"
)

// errHeld says that somebody counts on the pages of memory.
var errHeld = errors.New("the memory is in use")

// Hold keeps the pages of the memory what they are, until Let. View.Acquire calls it.
func (m *segmentMemory) Hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders++
}

// Let ends one Hold.
func (m *segmentMemory) Let() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders--
}

// partOf gives the part that an array lies in.
func (m *segmentMemory) partOf(l core.Layout) *part {
	m.mu.Lock()
	defer m.mu.Unlock()
	lo, hi := l.Span()
	for _, p := range slices.Backward(m.parts) {
		if p.lo <= int64(lo) && int64(hi) <= p.hi {
			return p
		}
	}
	return m.whole
}

// move maps a segment over the part of the memory in which an array lies, whose first element is at an offset of the segment. All
// arrays there show then what lies in the segment. It does nothing if the array lies there already. The segment's file stays the
// caller's; without one, the program is asked for it. errHeld says that somebody
// holds the memory; an error that wraps core.ErrProtocol, that the segment cannot be the array's.
func (m *segmentMemory) move(ctx context.Context, s contract.Segment, offset int, l core.Layout, file *os.File) (err error) {
	shift := int64(l.Offset()) - int64(offset)
	if now := m.partOf(l); now.segment == s && now.shift == shift {
		return nil
	}
	page := int64(os.Getpagesize())
	to := &part{segment: s, shift: shift, lo: max(0, shift), hi: min((m.Size()+page-1)/page*page, shift+s.Size)}
	if lo, hi := l.Span(); int64(lo) < to.lo || int64(hi) > to.hi || !s.Sealed {
		return violation("segment %d, of %d bytes, cannot have the array of a lease at byte %d", s.ID, s.Size, offset)
	}
	if file == nil {
		if file, err = m.segments.producer.Descriptor(ctx, s.ID, m.Writable()); err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	}
	if err := sealed(s, file); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders > 0 {
		return errHeld
	}
	if err := m.Replace(to.lo, file, to.lo-shift, to.hi-to.lo); err != nil {
		return err
	}
	var over error
	m.parts = slices.DeleteFunc(m.parts, func(p *part) bool {
		covered := to.lo <= p.lo && p.hi <= to.hi
		if covered {
			over = errors.Join(over, p.close())
		}
		return covered
	})
	m.parts = append(m.parts, to)
	return over
}

// again gives the memory once more, to be closed once more; nil if its last user has closed it.
func (m *segmentMemory) again(ctx context.Context) *segmentMemory {
	c := m.segments
	same, err := c.mappings.Use(ctx, key{m.whole.segment.ID, m.Writable()}, m.Size(), func(*reuse.Entry[key, *segmentMemory]) (*segmentMemory, error) {
		return nil, errHeld
	})
	if err != nil || same == m {
		return same
	}
	_ = same.Close() // another mapping of the same segment, of which nobody looks at m any more
	return nil
}
