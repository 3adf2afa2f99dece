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

// Own makes memory of zeros on a GPU that is this process's own, and that the program can be given by the descriptor, which
// the caller closes. The memory is used as that of the program is: by streams, and by copies. It has no fence: whoever
// gives it to the program waits until the program's work on it is done. It stays what it is when the program ends.
//
// The errors wrap core.ErrDevice (there is no such device), core.ErrUnsupported (no CUDA, or the device exports no memory),
// core.ErrUnavailable (the program is gone, or the GPU has no room), or core.ErrClosed.
func (i *Importer) Own(index int, size int64) (*Memory, *os.File, error) {
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
	m := &Memory{importer: i, release: func() {}}
	if m.device, err = i.enter(m, all[index]); err != nil {
		return nil, nil, err
	}
	i.leave(m) // what becomes of the program does not concern it
	var f *os.File
	err = m.device.Do(func() (err error) { f, err = m.create(size); return err })
	if err != nil {
		return nil, nil, driver.Explain("new", "", errors.Join(err, m.close()))
	}
	return m, f, nil
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
