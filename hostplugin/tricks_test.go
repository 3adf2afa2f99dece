package hostplugin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Descriptor implements contract.Producer.
func (p *fakeProducer) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	p.mu.Lock()
	p.opens++
	p.mu.Unlock()
	switch id {
	case lieDevice:
		return os.Open("/dev/zero")
	case lieDirectory:
		return os.Open("/")
	case liePipe:
		r, w, err := os.Pipe()
		if err == nil {
			err = w.Close()
		}
		return r, err
	case lieUnsealed:
		return unsealed(8)
	case lieShort, lieReadOnly:
		f, err := shm.Create("short", 8)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return shm.ReadOnly(f)
	}
	return p.Leases.Descriptor(ctx, id, writable)
}

// unsealed makes a file that others could cut short.
func unsealed(size int64) (*os.File, error) {
	f, err := os.CreateTemp("", "unsealed")
	if err != nil {
		return nil, err
	}
	return f, errors.Join(os.Remove(f.Name()), f.Truncate(size))
}

// Segments about which the fake lies.
const (
	lieDevice contract.SegmentID = iota + 1<<40
	lieDirectory
	liePipe
	lieUnsealed
	lieShort
	lieReadOnly
	lieTwice
)

// lies maps names to the segments that leases on them claim.
func lies() map[string]contract.Segment {
	return map[string]contract.Segment{
		"lie:device":    {ID: lieDevice, Size: 8, Sealed: false},
		"lie:directory": {ID: lieDirectory, Size: 8, Sealed: false},
		"lie:pipe":      {ID: liePipe, Size: 8, Sealed: false},
		"lie:unsealed":  {ID: lieUnsealed, Size: 8, Sealed: true},
		"lie:short":     {ID: lieShort, Size: 4096, Sealed: true},
		"lie:read-only": {ID: lieReadOnly, Size: 8, Sealed: true},
	}
}

// trick does what names with a colon ask for.
func (p *fakeProducer) trick(ctx context.Context, name string, req contract.Request) (contract.Lease, bool, error) {
	what, arg, ok := strings.Cut(name, ":")
	if !ok {
		return contract.Lease{}, false, nil
	}
	switch what {
	case "exit":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return contract.Lease{}, true, err
		}
		say(2, "I am leaving\n")
		os.Exit(n)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "side": // as scripts do that close all descriptors
		_ = syscall.Shutdown(3, syscall.SHUT_RDWR)
		<-ctx.Done()
		return contract.Lease{}, true, ctx.Err()
	case "deaf":
		select {}
	case "raise":
		return contract.Lease{}, true, &core.Error{
			Op: "lease", Object: name, Kind: core.ErrPython, Err: &core.PythonError{Type: "KeyError", Message: arg},
		}
	case "policy":
		return contract.Lease{}, true, &core.Error{
			Op: "lease", Object: name, Kind: core.ErrNotShared, Reason: contract.ReasonHeapOff,
			Err: fmt.Errorf("policy %v, writable %v, no wait %v", req.Copy, req.Writable, req.NoWait),
		}
	case "way": // "no wait" is what only the mailbox asks for
		l, err := p.Lease(ctx, arg, req)
		l.Framework = fmt.Sprintf("no wait %v", req.NoWait)
		return l, true, err
	case "beyond":
		l, err := p.Lease(ctx, arg, req)
		if s, ok := l.Handle.(contract.Segment); ok {
			s.Size = 1
			l.Handle = s
		}
		return l, true, err
	case "twice":
		l, err := p.Lease(ctx, arg, req)
		l.ID = contract.LeaseID(lieTwice)
		return l, true, err
	}
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.DTypeOf[int64](), Shape: []int{1}})
	if err != nil {
		return contract.Lease{}, true, err
	}
	l, err := p.Grant(contract.Lease{Layout: layout, Fence: contract.Ready{}, Framework: "fake", Writable: req.Writable}, kit.Memory{}, nil)
	l.Route, l.Handle = contract.RouteSharedHeap, lies()[name]
	return l, true, err
}
