package export

import (
	"context"

	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Rows are runs of bytes on a GPU at a constant distance.
type Rows struct {
	Addr   uintptr // of the first
	Width  int64   // bytes of each
	Pitch  int64   // bytes from one to the next, at least Width
	Height int64   // how many
}

// Copy makes the queue copy rows to dst without gaps. The GPU must reach dst.
func (q *Queue) Copy(dst uintptr, rows Rows) error {
	q.waits, q.last = true, nil
	return q.in(func() error { return q.copyRows(dst, rows) })
}

func (q *Queue) copyRows(dst uintptr, r Rows) error {
	if r.Height == 1 || r.Pitch == r.Width {
		return driver.MemcpyAsync(dst, r.Addr, r.Width*r.Height, q.stream)
	}
	return driver.MemcpyRowsAsync(dst, r.Width, r.Addr, r.Pitch, r.Width, r.Height, q.stream)
}

// hostChunk is how much CopyToHost copies between two checks of ctx.
const hostChunk = 32 << 20

// CopyToHost waits for what the queue waits for, copies rows to host memory without gaps, and waits for
// the copy. It checks ctx between chunks.
func (q *Queue) CopyToHost(ctx context.Context, dst uintptr, r Rows) error {
	// The driver uses this thread to copy to pageable memory, and cannot be interrupted.
	if err := q.Wait(ctx); err != nil {
		return err
	}
	if r.Height == 1 || r.Pitch == r.Width {
		r.Width, r.Height = r.Width*r.Height, 1
	}
	for r.Height > 0 && r.Width > 0 {
		part := r
		if r.Height > 1 {
			part.Height = min(r.Height, max(1, hostChunk/r.Width))
			r.Addr += uintptr(part.Height * r.Pitch)
			r.Height -= part.Height
		} else {
			part.Width = min(r.Width, hostChunk)
			r.Addr += uintptr(part.Width)
			r.Width -= part.Width
		}
		if err := q.Copy(dst, part); err != nil {
			return err
		}
		if err := q.Wait(ctx); err != nil {
			return err
		}
		dst += uintptr(part.Width * part.Height)
	}
	return nil
}
