package stats

import (
	"context"
	"errors"
	"reflect"

	"github.com/ndbridge/ndbridge/core"
)

// Kept is the [core.View.Reason] of what [Keep] gives: a copy that was asked for.
const Kept core.Reason = "kept"

// Keep copies v as it is now, for [Options.Base] and [CellOptions.Base] to compare later versions with. The copy has the name,
// the shape and the version of v, is dense and lies in host memory; close it when it is of no use any more. Of an array on a GPU it
// lies where that GPU can read it, if the host has CUDA. Memory of opaque and packed elements can be kept, too.
//
// The errors are those of [core.CopyBytes].
func Keep(ctx context.Context, v *core.View) (*core.View, error) {
	m, device := roomFor(v)
	kept, err := keep(ctx, v, m, device)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return kept, nil
}

func keep(ctx context.Context, v *core.View, m core.Memory, device core.Device) (*core.View, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: v.DType(), Shape: v.Shape(), Device: device, ReadOnly: true, Tag: v.Tag()})
	if err != nil {
		return nil, err
	}
	if _, err := core.CopyBytes(ctx, m.Bytes(), v); err != nil {
		return nil, err
	}
	return core.NewView(l, m, &core.ViewOptions{
		Name: v.Name(), Framework: v.Framework(), Reason: Kept, Version: v.Version(), Published: v.Published(),
	})
}

// memory is a core.Memory of Go's.
type memory []byte

func (m memory) Bytes() []byte { return m }
func (m memory) Addr() uintptr { return reflect.ValueOf([]byte(m)).Pointer() }
func (m memory) Size() int64   { return int64(len(m)) }
func (m memory) Close() error  { return nil }
