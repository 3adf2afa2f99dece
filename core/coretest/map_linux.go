package coretest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// mapping is a mapped file.
type mapping struct{ Memory }

func (m *mapping) Close() error { return syscall.Munmap(m.bytes) }

// mapSegment borrows a segment's file and maps it.
func mapSegment(ctx context.Context, p contract.Producer, s contract.Segment, writable bool) (*mapping, error) {
	f, err := p.Descriptor(ctx, s.ID, writable)
	if err != nil {
		return nil, fmt.Errorf("descriptor of segment %d: %w", s.ID, err)
	}
	defer f.Close() //nolint:errcheck // only mapped
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if s.Size <= 0 || info.Size() < s.Size {
		return nil, fmt.Errorf("segment of %d bytes in a file of %d", s.Size, info.Size())
	}
	if s.Sealed {
		if err := sealed(f); err != nil {
			return nil, err
		}
	}
	protection := syscall.PROT_READ
	if writable {
		protection |= syscall.PROT_WRITE
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(s.Size), protection, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map segment %d: %w", s.ID, err)
	}
	return &mapping{Memory{bytes: b}}, nil
}

// sealed checks that a file cannot shrink.
func sealed(f *os.File) error {
	const getSeals, sealShrink = 1034, 2 // F_GET_SEALS, F_SEAL_SHRINK
	seals, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), getSeals, 0)
	if errno != 0 || seals&sealShrink == 0 {
		return fmt.Errorf("the segment's file is not sealed against shrinking, as was said: seals %#x, %w",
			seals, errno)
	}
	return nil
}

// view maps a lease. Closing the view releases it; if view fails, the lease still stands.
func view(ctx context.Context, p contract.Producer, name string, l contract.Lease) (*core.View, error) {
	opts := core.ViewOptions{
		Name: name, Framework: l.Framework, Route: l.Route, Reason: l.Reason, Quirks: l.Quirks,
		Writable: l.Writable, Version: l.Version, Published: l.Published,
		Lender: Lender(func() error { return p.Release(ctx, l.ID) }),
	}
	if l.Handle == nil {
		return core.NewView(l.Layout, nil, &opts)
	}
	s, ok := l.Handle.(contract.Segment)
	if !ok {
		return nil, fmt.Errorf("handle %T", l.Handle)
	}
	m, err := mapSegment(ctx, p, s, l.Writable)
	if err != nil {
		return nil, err
	}
	v, err := core.NewView(l.Layout, m, &opts)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return v, nil
}
