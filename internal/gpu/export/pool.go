package export

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// pools are the pools of the current exports.
type pools struct {
	mu   sync.Mutex
	used map[driver.Pool]*poolUse
}

// poolUse is a pool from the first of its exports to the end of the last. After that, another pool may
// have its handle.
type poolUse struct {
	pool driver.Pool
	file *os.File
	uses int
}

func (x *Exporter) exportPool(p gpu.Pointer) (Memory, error) {
	u, err := x.pools.use(driver.Pool(p.Pool())) // first: the driver refuses allocations of a pool that was not exported
	if err != nil {
		return Memory{}, err
	}
	pointer, err := driver.PoolExportPointer(p.Base)
	if err != nil {
		return Memory{}, errors.Join(err, x.pools.unuse(u))
	}
	return Memory{
		Handle: contract.CUDAPool{Size: p.Size, GPU: p.GPU, Pointer: pointer},
		Parts: []Part{
			{Key: bufferKey{p.BufferID}, Size: p.Size},
			{
				Key:   u,
				open:  func() (*os.File, error) { return duplicate(u.file) },
				close: func() error { return x.pools.unuse(u) },
			},
		},
		Base: p.Base,
	}, nil
}

func (s *pools) use(pool driver.Pool) (*poolUse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[pool]
	if u == nil {
		fd, err := driver.PoolExport(pool)
		if err != nil {
			return nil, err
		}
		u = &poolUse{pool: pool, file: os.NewFile(uintptr(fd), "cuda-pool")}
		if s.used == nil {
			s.used = make(map[driver.Pool]*poolUse)
		}
		s.used[pool] = u
	}
	u.uses++
	return u, nil
}

func (s *pools) unuse(u *poolUse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.uses--; u.uses > 0 {
		return nil
	}
	delete(s.used, u.pool)
	return u.file.Close()
}

// duplicate makes another descriptor: the driver's files cannot be reopened.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var inner error
	err = raw.Control(func(from uintptr) { fd, inner = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, inner); err != nil {
		return nil, &os.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
