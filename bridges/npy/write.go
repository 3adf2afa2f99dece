package npy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/pieces"
)

// Write writes v as a file of NumPy's .npy format, piece by piece, so that an array of any size needs little memory: from
// the array's own memory where it lies in the order of the file, else through a buffer. An array that lies
// in column-major order is written in that order, as NumPy does; others in row-major order. Write ends when ctx does.
//
// NumPy cannot say every element type. One that it only knows as bytes of some size (bfloat16, a
// structure that is described in words of another framework) is written as such; note then says how to
// read it. The lanes of vector types become a last axis. Elements that share bytes are refused with
// core.ErrDType.
func Write(ctx context.Context, w io.Writer, v *core.View) (note string, err error) {
	header, note, err := headerOf(v.Layout())
	if err != nil {
		return "", err
	}
	if _, err := w.Write(header); err != nil {
		return "", fmt.Errorf("write %s: %w", v.Name(), err)
	}
	if columnMajor(v.Layout()) {
		transposed, err := v.Transpose()
		if err != nil {
			return "", err
		}
		defer transposed.Close() //nolint:errcheck // derived itself, so there is nothing to give back
		v = transposed
	}
	return note, pieces.Write(ctx, w, v)
}

// headerOf gives what stands before the elements, and the note of Write.
func headerOf(l core.Layout) (header []byte, note string, err error) {
	d := l.DType()
	if d.Packed() {
		return nil, "", &core.Error{
			Op: "write", Kind: core.ErrDType, Err: fmt.Errorf(".npy files cannot hold %v, whose elements share bytes", d),
			Remedy: "take the bytes as they are (--raw)",
		}
	}
	descr, known := describe(d, l.Tag())
	if !known {
		note = fmt.Sprintf("NumPy does not know %s: its elements are written as %s", nameOf(l), descr)
		if d.Lanes() == 1 && !d.Opaque() {
			note += fmt.Sprintf("; read it with np.load(file).view(ml_dtypes.%v)", d)
		}
	}
	shape := l.Shape()
	if !d.Opaque() && d.Lanes() > 1 {
		shape = append(shape, d.Lanes())
	}
	order := "False"
	if columnMajor(l) {
		order = "True"
	}
	text := fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }", descr, order, tuple(shape))
	return frame(text), note, nil
}

// columnMajor reports whether the elements are written in column-major order. Those that become a last
// axis of the file are not: their lanes lie together.
func columnMajor(l core.Layout) bool {
	if l.Contiguous() || !l.DType().Opaque() && l.DType().Lanes() > 1 {
		return false
	}
	transposed, err := l.Transpose()
	return err == nil && transposed.Contiguous()
}

// frame puts the magic number and the length before a header, and fills it up so that the elements
// begin at a multiple of 64 bytes. Version 1 of the format has a length of two bytes, version 2 of four,
// and version 3 is the same in UTF-8.
func frame(text string) []byte {
	const align = 64
	major, fixed := byte(1), len("\x93NUMPY")+2+2
	padded := func() int { return (fixed+len(text)+1+align-1)/align*align - fixed }
	if padded() > 1<<16-1 {
		major, fixed = 2, fixed+2
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r > '\x7f' }) {
		if major == 1 {
			fixed += 2
		}
		major = 3
	}
	n := padded()
	out := append([]byte("\x93NUMPY"), major, 0)
	if major == 1 {
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
	} else {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	out = append(out, text...)
	for range n - len(text) - 1 {
		out = append(out, ' ')
	}
	return append(out, '\n')
}

// tuple writes a shape as Python does.
func tuple(shape []int) string {
	parts := make([]string, len(shape))
	for i, dim := range shape {
		parts[i] = strconv.Itoa(dim)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func nameOf(l core.Layout) string {
	if l.Tag() != "" {
		return l.Tag()
	}
	return l.DType().String()
}
