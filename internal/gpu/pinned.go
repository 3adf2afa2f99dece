package gpu

import "github.com/ndbridge/ndbridge/internal/gpu/driver"

// PinnedSize is the size of the pinned memory that Borrow lends, in bytes.
const PinnedSize = 4 << 20

// maxPinned bounds how many pieces of unused pinned memory each GPU keeps. The call that frees one waits for
// all streams, so pieces are freed early only after more copies ran at once than this.
const maxPinned = 8

// Borrow lends PinnedSize bytes of host memory that the GPU copies to and from at full speed. The caller
// returns them with GiveBack.
func (p *Primary) Borrow() (addr uintptr, err error) {
	s := p.shared
	s.mu.Lock()
	if last := len(s.pinned) - 1; last >= 0 {
		defer s.mu.Unlock()
		addr, s.pinned = s.pinned[last], s.pinned[:last]
		return addr, nil
	}
	s.mu.Unlock() // the allocation may wait for the GPU
	err = p.Do(func() error { addr, err = driver.HostAlloc(PinnedSize); return err })
	return addr, err
}

// GiveBack returns memory that Borrow lent. No work may still use the memory, and p must be open.
func (p *Primary) GiveBack(addr uintptr) error {
	s := p.shared
	s.mu.Lock()
	if len(s.pinned) < maxPinned {
		defer s.mu.Unlock()
		s.pinned = append(s.pinned, addr)
		return nil
	}
	s.mu.Unlock()
	return p.End(func() error { return driver.FreeHost(addr) })
}
