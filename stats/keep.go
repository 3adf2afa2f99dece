package stats

import (
	"context"
	"reflect"

	"github.com/ndbridge/ndbridge/core"
)

// Kept is the [core.View.Reason] of what [Keep] gives: a copy that was asked for.
const Kept core.Reason = "kept"

// Keep copies v as it is now, for [Options.Base] and [CellOptions.Base] to compare later versions with. The copy has the name,
// the shape and the version of v, is dense and lies in Go's memory; close it when it is of no use any more. Memory of
// opaque and packed elements can be kept, too.
//
// The errors are those of [core.CopyBytes].
func Keep(ctx context.Context, v *core.View) (*core.View, error) {
	l, err := core.NewLayout(core.LayoutSpec{DType: v.DType(), Shape: v.Shape(), ReadOnly: true, Tag: v.Tag()})
	if err != nil {
		return nil, err
	}
	bytes := make(memory, v.NBytes())
	if _, err := core.CopyBytes(ctx, bytes, v); err != nil {
		return nil, err
	}
	return core.NewView(l, bytes, &core.ViewOptions{
		Name: v.Name(), Framework: v.Framework(), Reason: Kept, Version: v.Version(), Published: v.Published(),
	})
}

// memory is a core.Memory of Go's.
type memory []byte

func (m memory) Bytes() []byte { return m }
func (m memory) Addr() uintptr { return reflect.ValueOf([]byte(m)).Pointer() }
func (m memory) Size() int64   { return int64(len(m)) }
func (m memory) Close() error  { return nil }
