//go:build linux

package coretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// lease takes the array that the checks of segments use.
func lease(ctx context.Context, p contract.Producer) (contract.Lease, contract.Segment, error) {
	l, err := p.Lease(ctx, "picture", noWait())
	if err != nil {
		return l, contract.Segment{}, err
	}
	s, ok := l.Handle.(contract.Segment)
	if !ok {
		return l, s, fmt.Errorf("picture: handle %#v", l.Handle)
	}
	return l, s, nil
}

// checkWritable asks for every array to be writable. What was granted must be so; what was not must be
// refused for a reason.
func checkWritable(ctx context.Context, p contract.Producer) error {
	for _, a := range Arrays() {
		l, err := p.Lease(ctx, a.Name, contract.Request{NoWait: true, Writable: true})
		if errors.Is(err, core.ErrReadOnly) || errors.Is(err, core.ErrNotShared) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lease %s: want it granted, read-only or not shared, have %w", a.Name, err)
		}
		err = written(ctx, p, a, l)
		if err := errors.Join(err, p.Release(ctx, l.ID)); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	return nil
}

// written writes through a lease, sees through another what was written, and undoes it.
func written(ctx context.Context, p contract.Producer, a Array, l contract.Lease) error {
	if !l.Writable || l.Layout.ReadOnly() || contract.Copied(l.Route) {
		return fmt.Errorf("granted with writable %v, though read-only %v, route %v",
			l.Writable, l.Layout.ReadOnly(), l.Route)
	}
	if l.Layout.Len() == 0 {
		return nil
	}
	return first(ctx, p, a.Name, l, func(mine []byte) error {
		const mark = 1 // turns true to false, and any other element into one of its type
		mine[0] ^= mark
		defer func() { mine[0] ^= mark }()
		second, err := p.Lease(ctx, a.Name, noWait())
		if err != nil {
			return err
		}
		err = first(ctx, p, a.Name, second, func(theirs []byte) error {
			if theirs[0] != mine[0] {
				return errors.New("what was written through one lease is not seen through another")
			}
			return nil
		})
		return errors.Join(err, p.Release(ctx, second.ID))
	})
}

// first maps a lease and runs f on the bytes of the element with index [0, ..., 0].
func first(ctx context.Context, p contract.Producer, name string, l contract.Lease, f func([]byte) error) error {
	v, err := view(ctx, p, name, l)
	if err != nil {
		return err
	}
	for v.Rank() > 0 {
		w, err := v.Select(0, 0)
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		v = w
	}
	b, err := v.Bytes()
	if err == nil {
		err = f(b)
	}
	return errors.Join(err, v.Close())
}

func checkDescriptorUnknown(ctx context.Context, p contract.Producer) error {
	for _, id := range []contract.SegmentID{0, 1<<63 - 1, 1<<64 - 1} {
		f, err := p.Descriptor(ctx, id, false)
		if err == nil {
			return errors.Join(fmt.Errorf("segment %d was lent without a lease", id), f.Close())
		}
		if err := wants(err, core.ErrNotFound, "an unknown segment"); err != nil {
			return err
		}
	}
	return nil
}

// checkDescriptorOwned closes the file that it was lent, and asks again.
func checkDescriptorOwned(ctx context.Context, p contract.Producer) error {
	l, s, err := lease(ctx, p)
	if err != nil {
		return err
	}
	for range 3 {
		f, err := p.Descriptor(ctx, s.ID, false)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("the file was lent closed: %w", err)
		}
	}
	return p.Release(ctx, l.ID)
}

// checkDescriptorReadOnly asks for more than was leased, and tries to write all the same.
func checkDescriptorReadOnly(ctx context.Context, p contract.Producer) error {
	l, s, err := lease(ctx, p)
	if err != nil {
		return err
	}
	f, err := p.Descriptor(ctx, s.ID, true)
	if err == nil {
		return errors.Join(errors.New("lent for writing though no lease is writable"), f.Close())
	}
	if err := wants(err, core.ErrReadOnly, "for writing without a writable lease"); err != nil {
		return err
	}
	if f, err = p.Descriptor(ctx, s.ID, false); err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	b, err := syscall.Mmap(int(f.Fd()), 0, int(s.Size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err == nil {
		return errors.Join(errors.New("a file lent for reading can be mapped for writing"), syscall.Munmap(b))
	}
	return p.Release(ctx, l.ID)
}

func checkDescriptorReleased(ctx context.Context, p contract.Producer) error {
	l, s, err := lease(ctx, p)
	if err != nil {
		return err
	}
	if err := p.Release(ctx, l.ID); err != nil {
		return err
	}
	f, err := p.Descriptor(ctx, s.ID, false)
	if err == nil {
		return errors.Join(errors.New("a segment is lent after its last lease was released"), f.Close())
	}
	return wants(err, core.ErrNotFound, "after the last release")
}

func checkDescriptorContext(ctx context.Context, p contract.Producer) error {
	l, s, err := lease(ctx, p)
	if err != nil {
		return err
	}
	err = ended(ctx, func(ctx context.Context) error {
		f, err := p.Descriptor(ctx, s.ID, false)
		if err == nil {
			err = f.Close()
		}
		return err
	})
	return errors.Join(err, p.Release(ctx, l.ID))
}

func checkRelease(ctx context.Context, p contract.Producer) error {
	l, _, err := lease(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(
		p.Release(ctx),
		p.Release(ctx, l.ID),
		p.Release(ctx, l.ID),
		p.Release(ctx, l.ID, l.ID, 0, 1<<63-1, 1<<64-1),
	)
}

// standing is the number of leases that the producer counts.
func standing(ctx context.Context, p contract.Producer) (int, error) {
	info, err := p.Info(ctx)
	return info.Leases, err
}

// checkReleaseCounts watches the count of leases, and that no id comes twice.
func checkReleaseCounts(ctx context.Context, p contract.Producer) error {
	before, err := standing(ctx, p)
	if err != nil {
		return err
	}
	seen := map[contract.LeaseID]bool{}
	for range 3 {
		var ids []contract.LeaseID
		for _, a := range Arrays() {
			l, err := p.Lease(ctx, a.Name, noWait())
			if err != nil {
				return err
			}
			if seen[l.ID] {
				return fmt.Errorf("lease id %d was used twice", l.ID)
			}
			seen[l.ID] = true
			ids = append(ids, l.ID)
		}
		if n, err := standing(ctx, p); err != nil || n != before+len(ids) {
			return errors.Join(err, fmt.Errorf("%d leases stand, %d are counted", before+len(ids), n))
		}
		if err := p.Release(ctx, ids...); err != nil {
			return err
		}
		if n, err := standing(ctx, p); err != nil || n != before {
			return errors.Join(err, fmt.Errorf("%d leases stand, %d are counted", before, n))
		}
	}
	return nil
}

// checkReleaseOthers releases one of two leases on the same array: the other must stay good.
func checkReleaseOthers(ctx context.Context, p contract.Producer) error {
	one, _, err := lease(ctx, p)
	if err != nil {
		return err
	}
	two, s, err := lease(ctx, p)
	if err != nil {
		return err
	}
	if err := p.Release(ctx, one.ID); err != nil {
		return err
	}
	f, err := p.Descriptor(ctx, s.ID, false)
	if err != nil {
		return fmt.Errorf("after the release of another lease on the array: %w", err)
	}
	return errors.Join(f.Close(), p.Release(ctx, two.ID))
}

// checkConcurrent leases, maps, reads and releases everything from several goroutines at once.
func checkConcurrent(ctx context.Context, p contract.Producer) error {
	const workers, rounds = 8, 2
	before, err := standing(ctx, p)
	if err != nil {
		return err
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range rounds {
				errs[w] = errors.Join(errs[w], checkValues(ctx, p), checkArrays(ctx, p))
			}
		})
	}
	wg.Wait()
	after, err := standing(ctx, p)
	if after != before {
		err = errors.Join(err, fmt.Errorf("%d leases stand at the end, %d did at the beginning", after, before))
	}
	return errors.Join(errors.Join(errs...), err)
}
