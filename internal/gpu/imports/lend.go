package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Lend gives what another program is given the memory by. The first time, lend makes it, of the handle and, for each chunk of a
// contract.CUDAVMM, a descriptor, which it takes over. It is closed when the memory is retired, before the lease on it goes back. The memory is that
// of a program, and stays open meanwhile.
//
// The errors wrap core.ErrUnsupported (memory of a pool, or of more than most chunks) or core.ErrUnavailable (the program is gone), or are that of ctx.
func (m *Memory) Lend(ctx context.Context, most int, lend func(h contract.Handle, files []*os.File) io.Closer) (io.Closer, error) {
	if err := m.Usable(); err != nil {
		return nil, err
	}
	m.lending.Lock()
	defer m.lending.Unlock()
	if m.lent != nil {
		return m.lent, nil
	}
	var files []*os.File
	switch h := m.handle.(type) {
	case contract.CUDAIPC:
	case contract.CUDAVMM:
		if len(h.Chunks) > most {
			return nil, notLent("it consists of %d physical allocations, and at most %d can be handed over", len(h.Chunks), most)
		}
		for _, chunk := range h.Chunks {
			f, err := m.importer.cache.producer.Descriptor(ctx, chunk.ID, m.writable)
			if err != nil {
				for _, f := range files {
					err = errors.Join(err, f.Close())
				}
				return nil, err
			}
			files = append(files, f)
		}
	default:
		return nil, notLent("it is part of a memory pool, whose allocations only two processes can share")
	}
	m.lent = lend(m.handle, files)
	return m.lent, nil
}

func notLent(format string, args ...any) error {
	return &core.Error{
		Kind: core.ErrUnsupported, Err: fmt.Errorf("the memory cannot be given to another program: "+format, args...),
		Remedy: "copy it into an array of Session.NewOn, and pass that",
	}
}

// Read begins a read by another program, which end ends: the memory's program can wait for that. It waits until its own work
// before is done, or until ctx ends.
func (m *Memory) Read(ctx context.Context) (end func(), err error) {
	if err := m.Ready(ctx); err != nil {
		return nil, driver.Explain("call", "", err)
	}
	return m.begin()
}
