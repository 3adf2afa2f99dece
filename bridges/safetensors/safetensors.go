// Package safetensors writes views as files of the safetensors format, without a copy of a whole array.
//
//	set, err := trainer.Group("weight", "bias", "step")
//	...
//	if err := set.Next(ctx); err != nil { // the next version that the program publishes
//		return err
//	}
//	err = safetensors.Write(ctx, file, set.Views(), map[string]string{"made-by": "trainer"})
//
// What was published together is in the file as it was at one moment. The arrays may be of any layout and on any device from which
// core.Copy can copy. They are in row-major order in the file, whatever their order in memory.
package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/pieces"
)

// maxHeader is the longest header that the format's own library reads.
const maxHeader = 100_000_000

// Write writes named views, such as those of a hostplugin.Group, as one file. Larger elements come before smaller ones, so that
// all are aligned for whoever maps the file, and those of the same size in the order of their names. The metadata may be nil.
// Elements are written piece by piece: from the array's own memory where it lies in the order of the file, else through
// a buffer.
//
// Errors wrap core.ErrDType for elements that the format does not have, and core.ErrConfig for a name that is there twice
// or has a meaning of its own ("__metadata__"); then nothing was written. When ctx ends, Write reports that as the context's
// error. After other errors the file may be written in part.
func Write(ctx context.Context, w io.Writer, tensors iter.Seq2[string, *core.View], metadata map[string]string) error {
	all, err := collect(tensors)
	if err != nil {
		return err
	}
	text, err := header(all, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	for _, t := range all {
		if err := pieces.Write(ctx, w, t.view); err != nil {
			return err
		}
	}
	return nil
}

// tensor is an array and what the header calls its elements.
type tensor struct {
	name, dtype string
	view        *core.View
}

// collect gives the tensors in the order of the file.
func collect(tensors iter.Seq2[string, *core.View]) ([]tensor, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, &core.Error{Op: "write", Kind: core.ErrUnsupported, Err: errors.New("elements are in the order of this machine, big-endian; the format has little-endian ones")}
	}
	var all []tensor
	seen := map[string]bool{}
	for name, v := range tensors {
		if seen[name] || name == "__metadata__" {
			return nil, &core.Error{Op: "write", Object: name, Kind: core.ErrConfig, Err: errors.New("a file can have no such name, or it is there twice"), Remedy: "write it under another name"}
		}
		seen[name] = true
		dtype, ok := dtypeOf(v.DType())
		if !ok {
			return nil, &core.Error{
				Op: "write", Object: name, Kind: core.ErrDType, Err: fmt.Errorf("the format has no %v", v.Layout()), Remedy: "write it with package npy, convert it in Python, or write its bytes as other elements (View.As)",
			}
		}
		all = append(all, tensor{name, dtype, v})
	}
	slices.SortFunc(all, func(a, b tensor) int {
		return cmp.Or(cmp.Compare(b.view.DType().Size(), a.view.DType().Size()), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// dtypeOf says how the format calls a type of elements.
func dtypeOf(d core.DType) (name string, ok bool) {
	name, ok = map[core.DType]string{
		core.Bool: "BOOL", core.Int8: "I8", core.Int16: "I16", core.Int32: "I32", core.Int64: "I64",
		core.Uint8: "U8", core.Uint16: "U16", core.Uint32: "U32", core.Uint64: "U64",
		core.Float16: "F16", core.BFloat16: "BF16", core.Float32: "F32", core.Float64: "F64", core.Complex64: "C64",
	}[d]
	if ok {
		return name, true
	}
	name, ok = map[string]string{"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0"}[d.String()]
	return name, ok
}

// header gives what stands before the elements: the length of a JSON text, and that text, which spaces fill up so that
// the elements are aligned.
func header(all []tensor, metadata map[string]string) ([]byte, error) {
	const align = 8
	var text bytes.Buffer
	field := func(name string, value any) error {
		if text.Len() > 0 {
			text.WriteByte(',')
		} else {
			text.WriteByte('{')
		}
		for i, part := range []any{name, value} {
			if i == 1 {
				text.WriteByte(':')
			}
			encoded, err := json.Marshal(part)
			if err != nil {
				return err
			}
			text.Write(encoded)
		}
		return nil
	}
	if metadata != nil {
		if err := field("__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	var end int64
	for _, t := range all {
		begin := end
		end += t.view.NBytes()
		shape := t.view.Layout().Shape()
		if shape == nil {
			shape = []int{}
		}
		if err := field(t.name, struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.dtype, shape, [2]int64{begin, end}}); err != nil {
			return nil, err
		}
	}
	if text.Len() == 0 {
		text.WriteByte('{')
	}
	text.WriteByte('}')
	for text.Len()%align != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > maxHeader {
		return nil, &core.Error{Op: "write", Kind: core.ErrLayout, Err: fmt.Errorf("a header of %d bytes; readers take at most %d", text.Len(), maxHeader), Remedy: "write several files"}
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.Bytes()...), nil
}
