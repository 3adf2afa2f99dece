//go:build linux

package coretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// noWait is the request of checks that expect the array to be there.
func noWait() contract.Request { return contract.Request{NoWait: true} }

// absent is a name that no producer has.
const absent = "no_such_array_6f1d"

// describes refuses a layout that is not that of an agreed array. Strides and offsets are the
// producer's choice.
func describes(l core.Layout, a Array) error {
	switch {
	case l.DType() != a.DType || l.Tag() != a.Tag:
		return fmt.Errorf("%s: want %v elements %q, have %v %q", a.Name, a.DType, a.Tag, l.DType(), l.Tag())
	case !slices.Equal(l.Shape(), append([]int{}, a.Shape...)):
		return fmt.Errorf("%s: want shape %v, have %v", a.Name, a.Shape, l.Shape())
	case a.ReadOnly && !l.ReadOnly():
		return fmt.Errorf("%s: want a read-only layout", a.Name)
	}
	return nil
}

// wants refuses an error that is not of a category.
func wants(err, kind error, what string) error {
	if err == nil {
		return fmt.Errorf("%s: want an error that wraps %q, have none", what, kind.Error())
	}
	if !errors.Is(err, kind) {
		return fmt.Errorf("%s: want an error that wraps %q, have %w", what, kind.Error(), err)
	}
	return nil
}

// each runs f on every agreed array under a lease, and releases it.
func each(ctx context.Context, p contract.Producer, req contract.Request, f func(Array, contract.Lease) error) error {
	for _, a := range Arrays() {
		l, err := p.Lease(ctx, a.Name, req)
		if err != nil {
			return fmt.Errorf("lease %s: %w", a.Name, err)
		}
		err = f(a, l)
		if err := errors.Join(err, p.Release(ctx, l.ID)); err != nil {
			return err
		}
	}
	return nil
}

func checkValues(ctx context.Context, p contract.Producer) error {
	return each(ctx, p, noWait(), func(a Array, l contract.Lease) error {
		if err := describes(l.Layout, a); err != nil {
			return err
		}
		v, err := view(ctx, p, a.Name, l)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		got := make([]byte, v.NBytes())
		_, err = core.CopyBytes(ctx, got, v)
		if err := errors.Join(err, v.Close()); err != nil {
			return err
		}
		if !bytes.Equal(got, a.Data) {
			i := 0
			for i < min(len(got), len(a.Data)) && got[i] == a.Data[i] {
				i++
			}
			return fmt.Errorf("%s: values differ from byte %d of %d (want %d bytes) on",
				a.Name, i, len(got), len(a.Data))
		}
		return nil
	})
}

func checkRoutes(ctx context.Context, p contract.Producer) error {
	return each(ctx, p, noWait(), func(a Array, l contract.Lease) error {
		_, isSegment := l.Handle.(contract.Segment)
		empty := l.Layout.Len() == 0
		switch {
		case l.ID == 0:
			return fmt.Errorf("%s: lease without an id", a.Name)
		case l.Route == "":
			return fmt.Errorf("%s: lease without a route", a.Name)
		case contract.Copied(l.Route) != (l.Reason != ""):
			return fmt.Errorf("%s: route %v with reason %v", a.Name, l.Route, l.Reason)
		case empty != (l.Route == contract.RouteEmpty) || empty == isSegment:
			return fmt.Errorf("%s of %d elements: route %v, handle %#v", a.Name, l.Layout.Len(), l.Route, l.Handle)
		case l.Fence == nil:
			return fmt.Errorf("%s: lease without a fence", a.Name)
		case l.Writable:
			return fmt.Errorf("%s: writable, though nobody asked", a.Name)
		}
		return nil
	})
}

func checkUnknown(ctx context.Context, p contract.Producer) error {
	_, err := p.Lease(ctx, absent, noWait())
	if err := wants(err, core.ErrNotFound, "lease "+absent); err != nil {
		return err
	}
	e, ok := errors.AsType[*core.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("want a *core.Error, have %T", err)
	case e.Object != absent:
		return fmt.Errorf("the error names array %q, not %q", e.Object, absent)
	case core.Category(err) != core.ErrNotFound.Error():
		return fmt.Errorf("category %q", core.Category(err))
	}
	return nil
}

func checkHostileNames(ctx context.Context, p contract.Producer) error {
	for _, name := range []string{
		"", " ", ".", "..", "/", "[", "[]", "a[", "a..b", "samples.", "\x00", "a\nb", "\xff\xfe",
		"../../etc/passwd", "samples\x00", "__import__('os')", strings.Repeat("a", 1<<16),
		strings.Repeat("[0]", 1000), "é́", "\u202esamples",
	} {
		_, err := p.Lease(ctx, name, noWait())
		if err == nil {
			return fmt.Errorf("lease of %.40q was granted", name)
		}
		if !errors.Is(err, core.ErrNotFound) && !errors.Is(err, core.ErrConfig) {
			return fmt.Errorf("lease of %.40q: want not found or bad configuration, have %w", name, err)
		}
	}
	return nil
}

func checkLeaseContext(ctx context.Context, p contract.Producer) error {
	return ended(ctx, func(ctx context.Context) error {
		_, err := p.Lease(ctx, "samples", noWait())
		return err
	})
}

// ended checks that a call with a context that has ended already gives its error.
func ended(ctx context.Context, call func(context.Context) error) error {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := wants(call(canceled), context.Canceled, "with a canceled context"); err != nil {
		return err
	}
	expired, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	return wants(call(expired), context.DeadlineExceeded, "with an expired context")
}

// checkWaiting leases a name that never comes. A producer that may still make it waits until the
// context ends; one that cannot says so.
func checkWaiting(ctx context.Context, p contract.Producer) error {
	const wait, slack = 50 * time.Millisecond, 5 * time.Second
	begin := time.Now()
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		waiting, cancel := context.WithTimeout(ctx, wait)
		if errors.Is(end, context.Canceled) {
			cancel()
			waiting, cancel = context.WithCancel(ctx)
			time.AfterFunc(wait, cancel)
		}
		_, err := p.Lease(waiting, absent, contract.Request{})
		cancel()
		if !errors.Is(err, core.ErrNotFound) {
			if err := wants(err, end, "waiting for "+absent); err != nil {
				return err
			}
		}
		if late := time.Since(begin) - 2*wait; late > slack {
			return fmt.Errorf("the wait ended %v after its context", late)
		}
	}
	return nil
}

func checkCopyNever(ctx context.Context, p contract.Producer) error {
	for _, a := range Arrays() {
		l, err := p.Lease(ctx, a.Name, contract.Request{NoWait: true, Copy: contract.CopyNever})
		if err != nil {
			e, _ := errors.AsType[*core.Error](err)
			if err := wants(err, core.ErrNotShared, "lease "+a.Name); err != nil {
				return err
			}
			if e == nil || e.Reason == "" {
				return fmt.Errorf("%s: refused without a reason: %w", a.Name, err)
			}
			continue
		}
		if err := p.Release(ctx, l.ID); err != nil {
			return err
		}
		if contract.Copied(l.Route) {
			return fmt.Errorf("%s was copied, for the reason %v, against the request", a.Name, l.Reason)
		}
	}
	return nil
}
