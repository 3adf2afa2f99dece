package primary

import "github.com/ndbridge/ndbridge/cuda/internal/driver"

// PinnedSize is how much pinned memory Borrow gives.
const PinnedSize = 4 << 20

// maxPinned bounds how many pieces of pinned memory are kept for each GPU while nobody uses them. To free
// them waits for all streams, so that only what many copies at once have needed is freed at all before the
// last user of the GPU goes.
const maxPinned = 8

// Borrow gives PinnedSize bytes of host memory that the GPU copies to and from at full speed. The caller
// gives them back.
func (g *GPU) Borrow() (addr uintptr, err error) {
	d := g.shared
	d.mu.Lock()
	if last := len(d.pinned) - 1; last >= 0 {
		defer d.mu.Unlock()
		addr, d.pinned = d.pinned[last], d.pinned[:last]
		return addr, nil
	}
	d.mu.Unlock() // to allocate may wait for the GPU
	err = g.Do(func() error { addr, err = driver.HostAlloc(PinnedSize); return err })
	return addr, err
}

// GiveBack takes what Borrow gave. No work uses it any more, and the GPU is not closed.
func (g *GPU) GiveBack(addr uintptr) error {
	d := g.shared
	d.mu.Lock()
	if len(d.pinned) < maxPinned {
		defer d.mu.Unlock()
		d.pinned = append(d.pinned, addr)
		return nil
	}
	d.mu.Unlock()
	return g.End(func() error { return driver.FreeHost(addr) })
}
