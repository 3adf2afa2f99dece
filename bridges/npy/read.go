package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// maxHeader bounds what stands before the elements. NumPy itself refuses more than 10,000 bytes.
const maxHeader = 1 << 20

// Read reads a file of NumPy's .npy format into an array that empty makes, dense and writable. Of a file in column-major
// order the result is a transposed view of that array. The caller closes it. Errors wrap core.ErrLayout for what is no
// such file, core.ErrDType for elements that are no plain numbers of this machine, and those of empty.
func Read(r io.Reader, empty func(d core.DType, shape ...int) (*core.View, error)) (*core.View, error) {
	header, err := readHeader(r)
	if err != nil {
		return nil, &core.Error{Op: "read", Kind: core.ErrLayout, Err: err}
	}
	descr, order, shape, err := parseHeader(header)
	if err != nil {
		return nil, &core.Error{Op: "read", Kind: core.ErrLayout, Err: err}
	}
	dtype, tag, err := cai.ParseTypestr(descr, "")
	if err != nil || tag != "" || dtype.Opaque() {
		return nil, &core.Error{
			Op: "read", Kind: core.ErrDType, Err: fmt.Errorf("elements of %s", descr), Remedy: "save an array of plain numbers in the order of this machine",
		}
	}
	if order == "True" {
		slices.Reverse(shape)
	}
	v, err := empty(dtype, shape...)
	if err != nil {
		return nil, err
	}
	if err := fill(r, v); err != nil {
		return nil, errors.Join(&core.Error{Op: "read", Kind: core.ErrLayout, Err: err}, v.Close())
	}
	if order != "True" {
		return v, nil
	}
	transposed, err := v.Transpose()
	return transposed, errors.Join(err, v.Close())
}

func fill(r io.Reader, v *core.View) error {
	to, err := v.Bytes()
	if err != nil {
		return err
	}
	if n, err := io.ReadFull(r, to); err != nil {
		return fmt.Errorf("the header promises %d bytes of elements, %d are there", len(to), n)
	}
	return nil
}

func readHeader(r io.Reader) (string, error) {
	start := make([]byte, len("\x93NUMPY")+2)
	if _, err := io.ReadFull(r, start); err != nil || !bytes.HasPrefix(start, []byte("\x93NUMPY")) {
		return "", errors.New("not an .npy file")
	}
	width := 4 // bytes of the header's length
	switch major := start[len(start)-2]; major {
	case 1:
		width = 2
	case 2, 3:
	default:
		return "", fmt.Errorf("version %d of the format; known are 1 to 3", major)
	}
	length := make([]byte, 4)
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return "", errors.New("the file ends inside its header")
	}
	n := binary.LittleEndian.Uint32(length)
	if n > maxHeader {
		return "", fmt.Errorf("a header of %d bytes, expected at most %d", n, maxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", errors.New("the file ends inside its header")
	}
	return string(text), nil
}

// parseHeader reads the dict that NumPy writes, of arrays that are not structured.
func parseHeader(text string) (descr, order string, shape []int, err error) {
	for key, form := range map[string]string{"descr": `'([^']*)'`, "fortran_order": `(True|False)`, "shape": `\(([0-9, ]*)\)`} {
		found := regexp.MustCompile(`["']` + key + `["']\s*:\s*` + form).FindStringSubmatch(text)
		switch {
		case found == nil && key == "descr":
			descr = "a structure"
		case found == nil:
			return "", "", nil, fmt.Errorf("the header has no %s", key)
		case key == "descr":
			descr = found[1]
		case key == "fortran_order":
			order = found[1]
		default:
			for part := range strings.SplitSeq(found[1], ",") {
				if part = strings.TrimSpace(part); part == "" {
					continue
				}
				dim, err := strconv.Atoi(part)
				if err != nil {
					return "", "", nil, fmt.Errorf("the shape (%s)", found[1])
				}
				shape = append(shape, dim)
			}
		}
	}
	return descr, order, shape, nil
}
