// Package pieces reads the elements of views of any layout piece by piece, so that what writes them needs little memory: in
// place where they lie as they are wanted and stay as they are, and else through a buffer.
package pieces

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Default is the size of a piece that is large enough to read at the speed of memory and small enough to
// stay in a processor's cache.
const Default = 256 << 10

// Write writes the bytes of the elements of v in row-major order. Its errors are those of Of, and of w, which it names.
func Write(ctx context.Context, w io.Writer, v *core.View) error {
	for piece, err := range Of(ctx, v, Default) {
		if err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("write %s: %w", v.Name(), err)
		}
	}
	return nil
}

// Of yields the bytes of the elements of v in row-major order, in pieces of at most size bytes (but
// at least one element). All pieces together are what [core.CopyBytes] would copy: of packed elements,
// only the last piece can have unused bits. A piece is valid until the next one, and must not be written to: it may be
// the memory itself.
//
// It stops after the first error, which is one of core.CopyBytes.
func Of(ctx context.Context, v *core.View, size int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if v.Len() == 0 {
			return
		}
		r := reader{size: size, yield: yield}
		if v.DType().Packed() {
			r.whole(ctx, v)
			return
		}
		r.split(ctx, v)
	}
}

type reader struct {
	size  int
	buf   []byte
	yield func([]byte, error) bool
}

// split reads v in one piece if it fits, and else the parts of its outermost axis that has any. It
// reports whether to go on: not after an error, and not if the loop was left.
func (r *reader) split(ctx context.Context, v *core.View) bool {
	n := v.NBytes()
	if n <= int64(r.size) || v.Len() == 1 {
		return r.read(ctx, v)
	}
	axis := 0
	for v.Dim(axis) == 1 {
		axis++
	}
	each := n / int64(v.Dim(axis))
	step := max(int(int64(r.size)/each), 1)
	for lo := 0; lo < v.Dim(axis); lo += step {
		part, err := v.Sub(axis, lo, min(lo+step, v.Dim(axis)))
		if err != nil {
			r.yield(nil, err)
			return false
		}
		ok := r.split(ctx, part)
		_ = part.Close() // v is still open, so there is nothing to give back
		if !ok {
			return false
		}
	}
	return true
}

// read reads v in one piece.
func (r *reader) read(ctx context.Context, v *core.View) bool {
	memory, done, err := inPlace(ctx, v)
	defer done()
	switch {
	case err != nil:
		r.yield(nil, err)
		return false
	case memory != nil:
		return r.yield(memory, nil)
	}
	n := int(v.NBytes())
	if cap(r.buf) < n {
		r.buf = make([]byte, max(n, min(r.size, 1<<20)))
	}
	n, err = core.CopyBytes(ctx, r.buf[:n], v)
	if err != nil {
		r.yield(nil, err)
		return false
	}
	return r.yield(r.buf[:n], nil)
}

// inPlace gives the memory of v until done, or nil where it must be copied: where the host cannot read it, where the
// elements do not follow each other, where it is a file that somebody may truncate, so that reading would fault, and where the
// program may write meanwhile, so that who reads bytes, or reads them twice, would see numbers that never were.
func inPlace(ctx context.Context, v *core.View) (memory []byte, done func(), err error) {
	written := !v.Copied() && v.Version() == 0 // for all we know
	if !v.Layout().Contiguous() || written || v.Route() == contract.RouteMappedFile {
		return nil, func() {}, nil
	}
	_, _, release, err := v.Acquire()
	if err != nil {
		return nil, release, err
	}
	if memory, err = v.Bytes(); err != nil {
		return nil, release, nil //nolint:nilerr // CopyBytes says what is wrong
	}
	return memory, release, v.Wait(ctx)
}

// whole reads packed elements. Their arrays are always dense, so their bytes need no gathering, and
// parts of them cannot be had.
func (r *reader) whole(ctx context.Context, v *core.View) {
	all := make([]byte, v.NBytes())
	n, err := core.CopyBytes(ctx, all, v)
	if err != nil {
		r.yield(nil, err)
		return
	}
	for lo := 0; lo < n; lo += r.size {
		if !r.yield(all[lo:min(lo+r.size, n)], nil) {
			return
		}
	}
}
