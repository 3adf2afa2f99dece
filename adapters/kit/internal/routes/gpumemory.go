package routes

import (
	"errors"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/export"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// gpuMemory is what a lease on memory of a GPU stands on: the parts of the export, and the page of the
// word that fences it, if there is one.
func gpuMemory(e export.Memory, word *export.FenceWord) kit.Memory {
	m := kit.Memory{Name: func(l *contract.Lease, ids []contract.SegmentID) {
		l.Handle = withIDs(e.Handle, ids)
		if word != nil {
			l.Fence = word.Core(ids[len(ids)-1])
		}
	}}
	for _, p := range e.Parts {
		m.Parts = append(m.Parts, exportPart{p})
	}
	if word != nil {
		m.Fence = (*wordPage)(word.Page)
	}
	return m
}

// withIDs names the segments of a handle.
func withIDs(h contract.Handle, ids []contract.SegmentID) contract.Handle {
	switch h := h.(type) {
	case contract.CUDAIPC:
		h.ID = ids[0]
		return h
	case contract.CUDAVMM:
		h.Chunks = slices.Clone(h.Chunks)
		for i := range h.Chunks {
			h.Chunks[i].ID = ids[i]
		}
		return h
	case contract.CUDAPool:
		h.ID, h.Pool = ids[0], ids[1]
		return h
	default:
		return h
	}
}

// exportPart is a part of an export as a backing. Its descriptor has no mode: the driver decides.
type exportPart struct{ export.Part }

func (p exportPart) Key() any                    { return p.Part.Key }
func (p exportPart) Size() int64                 { return p.Part.Size }
func (p exportPart) Sealed() bool                { return false }
func (p exportPart) Open(bool) (*os.File, error) { return p.Part.Open() }

// wordPage is a page of fences as a backing. It is its exporter's.
type wordPage export.Page

func (p *wordPage) page() *export.Page                   { return (*export.Page)(p) }
func (p *wordPage) Key() any                             { return p }
func (p *wordPage) Size() int64                          { return p.page().Size() }
func (p *wordPage) Sealed() bool                         { return true }
func (p *wordPage) Open(writable bool) (*os.File, error) { return p.page().Open(writable) }
func (p *wordPage) Close() error                         { return nil }

// rows gives what is to be copied, and where to, as rows that lie equally far apart.
func (p copyPlan) rows(each func(offset int64, rows export.Rows) error) error {
	if p.axes == nil {
		return each(0, export.Rows{Addr: p.lo, Width: p.size, Pitch: p.size, Height: 1})
	}
	outer, r := p, export.Rows{Width: int64(p.run), Pitch: int64(p.run), Height: 1}
	if last := p.axes[len(p.axes)-1]; last.stride >= p.run {
		outer.axes = p.axes[:len(p.axes)-1]
		r.Pitch, r.Height = int64(last.stride), int64(last.extent)
	}
	index := make([]int, len(outer.axes))
	var offset int64
	for addr, more := p.addr, true; more; addr, more = outer.next(index, addr) {
		r.Addr = addr
		if err := each(offset, r); err != nil {
			return err
		}
		offset += r.Width * r.Height
	}
	return nil
}

// withMapping maps a part of a file for f.
func withMapping(file *os.File, offset, size int64, f func(addr uintptr) error) error {
	m, err := shm.Map(file, offset+size, true)
	if err != nil {
		return err
	}
	return errors.Join(f(m.Addr()+uintptr(offset)), m.Close())
}
