package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Own is memory on a GPU that is this process's own, and that programs can be given. All methods are safe for concurrent
// use.
type Own struct {
	Owner any // what its maker keeps with it

	base *Memory // the use of the importer and of the allocation that goes on until Close
}

// Own makes memory of zeros, and gives the descriptor by which programs can have it, which the caller closes. The caller
// closes the memory, when nobody uses what Memory gives. It stays what it is when the importer's program ends.
//
// The errors wrap core.ErrDevice (there is no such device), core.ErrUnsupported (no CUDA, or the device exports no memory),
// core.ErrUnavailable (the program is gone, or the GPU has no room), or core.ErrClosed.
func (i *Importer) Own(index int, size int64) (*Own, *os.File, error) {
	all, err := gpu.Devices()
	if err != nil {
		return nil, nil, err
	}
	if index < 0 || index >= len(all) {
		return nil, nil, &core.Error{
			Kind: core.ErrDevice, Err: fmt.Errorf("device %d of %d", index, len(all)), Remedy: "cuda.Devices lists those that there are",
		}
	}
	if !all[index].VMM {
		return nil, nil, &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("%s has no memory that other processes can map by a descriptor", all[index].Name),
			Remedy: "pass an array in host memory",
		}
	}
	m := &Memory{importer: i}
	if m.device, err = i.enter(m, all[index]); err != nil {
		return nil, nil, err
	}
	i.leave(m) // what becomes of the program does not concern it
	var f *os.File
	err = m.device.Do(func() (err error) { f, err = m.create(size); return err })
	if err != nil {
		return nil, nil, driver.Explain("new", "", errors.Join(err, m.close()))
	}
	return &Own{base: m}, f, nil
}

// create makes memory of zeros. The context is current. After an error, close closes what was opened.
func (m *Memory) create(size int64) (*os.File, error) {
	mapping, f, err := gpu.Allocate(m.device.Device, size)
	if err != nil {
		return nil, err
	}
	m.allocation = &allocation{addr: mapping.Addr, size: mapping.Size}
	m.allocation.undo.add(func() error { return m.device.Do(mapping.Unmap) })
	s, err := driver.StreamCreate()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = errors.Join(driver.MemsetD8Async(mapping.Addr, 0, mapping.Size, s), driver.StreamSynchronize(s), driver.StreamDestroy(s))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Memory gives a [*Memory] for a view. It is used as that of a program is: by streams, and by copies. It has no fence: whoever
// gives it to a program waits until the program's work on it is done. Its Close returns at once, and calls release when each
// [Stream] that has awaited it has done all work that it was given before. Memory does not call release if it fails: the
// importer's program is gone (core.ErrUnavailable), or the importer closed.
func (o *Own) Memory(release func()) (core.Memory, error) {
	all := o.base.allocation
	m := &Memory{
		importer: o.base.importer, device: o.base.device, own: o, release: release,
		allocation: &allocation{addr: all.addr, size: all.size, lent: true},
	}
	if err := m.importer.stand(); err != nil {
		return nil, err
	}
	return m, nil
}

// Size gives its bytes, of which there may be more than were asked for.
func (o *Own) Size() int64 { return o.base.Size() }

// Close frees it here. Programs that have it keep it.
func (o *Own) Close() error { return o.base.close() }

// Own gives the memory of this process's own that m is a use of, or nil.
func (m *Memory) Own() *Own { return m.own }

// Settle waits until the streams of this process have done all that they were given with the memory, or until ctx ends.
func (m *Memory) Settle(ctx context.Context) error {
	m.mu.Lock()
	uses := slices.Clone(m.uses)
	m.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	for i := range uses {
		uses[i].until = uses[i].stream.given.Load()
	}
	err := driver.Poll(ctx, func() (bool, error) {
		uses = slices.DeleteFunc(uses, func(u use) bool { return u.stream.reached(u.until) })
		return len(uses) == 0, nil
	})
	if err != nil {
		return &core.Error{Op: "call", Kind: err, Err: errors.New("the host's own work with the array on the GPU is not done yet")}
	}
	return nil
}
