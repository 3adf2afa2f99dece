package cuda

import (
	"context"

	"github.com/ndbridge/ndbridge/core"
)

// CopyOut implements core.Copier.
func (m *memory) CopyOut(ctx context.Context, dst []byte, l core.Layout) error {
	return m.copied("copy", func() error { return m.gpu.copies.Out(ctx, dst, l, m.Addr()) })
}

// CopyIn implements core.Copier.
func (m *memory) CopyIn(ctx context.Context, l core.Layout, src []byte) error {
	return m.copied("put", func() error { return m.gpu.copies.In(ctx, l, m.Addr(), src) })
}

// copied calls f, which copies. The memory must be that of a living program until f returns: else the
// outcome is an error.
func (m *memory) copied(op string, f func() error) error {
	err := m.usable()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = m.usable()
	}
	if err != nil {
		return about(op, "", err)
	}
	return nil
}
