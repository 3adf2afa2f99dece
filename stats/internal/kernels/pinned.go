//go:build cuda

package kernels

import (
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// pinned is a core.Memory of the host that GPUs reach, too.
type pinned struct {
	primary *gpu.Primary
	addr    uintptr
	bytes   []byte
}

// Pinned makes n bytes of host memory that the device with this index in this process reaches.
func Pinned(index, n int) (core.Memory, error) {
	p, err := gpu.Open(index)
	if err != nil {
		return nil, explain("", err)
	}
	m := &pinned{primary: p}
	if err := p.Do(func() error { m.addr, err = driver.HostAlloc(int64(n)); return err }); err != nil {
		return nil, explain("", errors.Join(err, p.Close()))
	}
	m.bytes = gpu.Pinned(m.addr, n)
	return m, nil
}

// Bytes implements core.Memory.
func (m *pinned) Bytes() []byte { return m.bytes }

// Addr implements core.Memory.
func (m *pinned) Addr() uintptr { return m.addr }

// Size implements core.Memory.
func (m *pinned) Size() int64 { return int64(len(m.bytes)) }

// Close implements core.Memory.
func (m *pinned) Close() error {
	err := m.primary.End(func() error { return driver.FreeHost(m.addr) })
	if err = errors.Join(err, m.primary.Close()); err != nil {
		return explain("", err)
	}
	return nil
}
