package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ndbridge/ndbridge/core"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 20 // bytes; NumPy itself refuses more than 10,000 unless told to trust the file
)

// header is what an .npy file says about its array. The layout's offset is where the data begins in
// the file.
type header struct {
	layout core.Layout
	end    int64 // where the data ends in the file
}

// readHeader reads the header at the beginning of r, which stands for a file of size bytes, and
// checks that the file has all the data that the header promises. Errors wrap core.ErrLayout or, for
// element types that cannot be shared, core.ErrDType.
func readHeader(r io.Reader, size int64) (header, error) {
	text, offset, err := headerText(r)
	if err != nil {
		return header{}, malformed(err)
	}
	v, err := parseLiteral(text)
	if err != nil {
		return header{}, malformed(fmt.Errorf("header: %w", err))
	}
	spec, err := layoutSpec(v)
	if err != nil {
		return header{}, err
	}
	spec.Offset, spec.ReadOnly = offset, true
	l, err := core.NewLayout(spec)
	if err != nil {
		return header{}, err
	}
	h := header{layout: l, end: int64(offset) + l.NBytes()}
	if h.end > size {
		return header{}, malformed(fmt.Errorf("the header promises %d bytes of data, %d are there",
			l.NBytes(), max(size-int64(offset), 0)))
	}
	return h, nil
}

func malformed(err error) error {
	return &core.Error{Op: "read", Kind: core.ErrLayout, Err: err}
}

// headerText reads as far as the data, and gives the header's text as UTF-8.
func headerText(r io.Reader) (text string, offset int, err error) {
	preamble := make([]byte, len(magic)+2)
	if _, err := io.ReadFull(r, preamble); err != nil || string(preamble[:len(magic)]) != magic {
		return "", 0, errors.New("not an .npy file")
	}
	major := preamble[len(magic)]
	width := 4 // bytes of the header's length
	switch major {
	case 1:
		width = 2
	case 2, 3:
	default:
		return "", 0, fmt.Errorf("version %d.%d of the format; known are 1 to 3", major, preamble[len(magic)+1])
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return "", 0, errors.New("the file ends inside its header")
	}
	n := binary.LittleEndian.Uint32(length)
	if n > maxHeader {
		return "", 0, fmt.Errorf("a header of %d bytes, expected at most %d", n, maxHeader)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r, raw); err != nil {
		return "", 0, errors.New("the file ends inside its header")
	}
	if major < 3 {
		return latin1(raw), len(preamble) + width + len(raw), nil
	}
	if !utf8.Valid(raw) {
		return "", 0, errors.New("the header is not UTF-8")
	}
	return string(raw), len(preamble) + width + len(raw), nil
}

func latin1(raw []byte) string {
	var b strings.Builder
	for _, c := range raw {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// layoutSpec turns the header's dict into the description of a dense array.
func layoutSpec(v any) (core.LayoutSpec, error) {
	d, ok := v.(dict)
	if !ok || len(d) != 3 {
		return core.LayoutSpec{}, malformed(errors.New("the header is not a dict of descr, fortran_order and shape"))
	}
	fortran, ok := d["fortran_order"].value.(bool)
	if !ok {
		return core.LayoutSpec{}, malformed(errors.New("fortran_order is not a bool"))
	}
	dims, ok := d["shape"].value.(sequence)
	if !ok {
		return core.LayoutSpec{}, malformed(errors.New("shape is not a tuple"))
	}
	spec := core.LayoutSpec{}
	for _, dim := range dims {
		n, ok := dim.(int)
		if !ok {
			return core.LayoutSpec{}, malformed(fmt.Errorf("%v in the shape is not an int", dim))
		}
		spec.Shape = append(spec.Shape, n)
	}
	descr := d["descr"]
	var err error
	if spec.DType, spec.Tag, err = elementType(descr.value, descr.source); err != nil {
		return core.LayoutSpec{}, err
	}
	if !fortran {
		return spec, nil
	}
	// Check the extents first: then the strides cannot overflow.
	dense, err := core.NewLayout(spec)
	if err != nil {
		return core.LayoutSpec{}, err
	}
	stride := dense.DType().Size()
	for _, dim := range spec.Shape {
		spec.Strides = append(spec.Strides, stride)
		stride *= max(dim, 1)
	}
	return spec, nil
}
