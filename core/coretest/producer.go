package coretest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Producer is a [contract.Producer] of arrays that a test gives it. The arrays lie in files in a temporary folder of the
// test, and their leases have the route "mapped-file". All methods are safe for concurrent use.
type Producer struct {
	dir    string
	mu     sync.Mutex
	held   map[string]*held
	leases map[contract.LeaseID]grant
	last   contract.LeaseID
	added  chan struct{} // closed, and made anew, when an array is added
}

// held is an array in its file, which is one segment.
type held struct {
	array  Array
	layout core.Layout
	file   string
	id     contract.SegmentID
	size   int64
}

type grant struct {
	array    *held
	writable bool
}

// margin is where in its file an array begins, so that offsets are never zero.
const margin = 64

// NewProducer makes a Producer of some arrays. If an array cannot be stored, the test fails.
func NewProducer(tb testing.TB, arrays ...Array) *Producer {
	tb.Helper()
	p := &Producer{
		dir: tb.TempDir(), held: map[string]*held{}, leases: map[contract.LeaseID]grant{},
		added: make(chan struct{}),
	}
	for _, a := range arrays {
		if err := p.Add(a); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

// Add offers one more array. Calls of Lease that wait for its name return.
func (p *Producer) Add(a Array) error {
	l, err := a.Layout()
	if err != nil {
		return err
	}
	spec := l.Spec()
	spec.Offset = margin
	if l, err = core.NewLayout(spec); err != nil {
		return err
	}
	stored, err := a.Stored()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.held[a.Name]; ok {
		return fmt.Errorf("array %q is there already", a.Name)
	}
	h := &held{array: a, layout: l, id: contract.SegmentID(len(p.held) + 1), size: margin + int64(len(stored))}
	h.file = filepath.Join(p.dir, strconv.Itoa(int(h.id)))
	if err := os.WriteFile(h.file, append(make([]byte, margin), stored...), 0o600); err != nil {
		return err
	}
	p.held[a.Name] = h
	close(p.added)
	p.added = make(chan struct{})
	return nil
}

// Info implements contract.Producer.
func (p *Producer) Info(ctx context.Context) (contract.Info, error) {
	if err := ctx.Err(); err != nil {
		return contract.Info{}, &core.Error{Op: "info", Kind: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return contract.Info{
		Program: "coretest", Plugin: "coretest 1", PID: os.Getpid(), SharedHeap: "there is none",
		Leases: len(p.leases),
	}, nil
}

// Arrays implements contract.Producer.
func (p *Producer) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		p.mu.Lock()
		all := maps.Clone(p.held)
		p.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := ctx.Err(); err != nil {
				yield(contract.Entry{}, &core.Error{Op: "list", Kind: err})
				return
			}
			if !yield(contract.Entry{Name: name, Framework: "coretest", Layout: all[name].layout}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(contract.Entry{}, &core.Error{Op: "list", Kind: err})
		}
	}
}

// Lease implements contract.Producer. It waits for a name that was not added yet.
func (p *Producer) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	for {
		if err := ctx.Err(); err != nil {
			return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: err}
		}
		p.mu.Lock()
		h, ok := p.held[name]
		if ok {
			defer p.mu.Unlock()
			return p.grant(h, req)
		}
		added := p.added
		p.mu.Unlock()
		if req.NoWait {
			return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: core.ErrNotFound}
		}
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
}

func (p *Producer) grant(h *held, req contract.Request) (contract.Lease, error) {
	if req.Writable && h.layout.ReadOnly() {
		return contract.Lease{}, &core.Error{Op: "lease", Object: h.array.Name, Kind: core.ErrReadOnly}
	}
	p.last++
	p.leases[p.last] = grant{h, req.Writable}
	l := contract.Lease{
		ID: p.last, Layout: h.layout, Fence: contract.Ready{}, Framework: "coretest",
		Route: contract.RouteEmpty, Writable: req.Writable,
	}
	if h.layout.Len() > 0 {
		l.Route, l.Handle = contract.RouteMappedFile, contract.Segment{ID: h.id, Size: h.size}
	}
	return l, nil
}

// Descriptor implements contract.Producer.
func (p *Producer) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	refuse := func(kind, cause error) error {
		return &core.Error{Op: "descriptor", Kind: kind, Err: cause}
	}
	if err := ctx.Err(); err != nil {
		return nil, refuse(err, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var leased *held
	granted := false
	for _, g := range p.leases {
		if g.array.id == id && g.array.layout.Len() > 0 {
			leased, granted = g.array, granted || g.writable
		}
	}
	switch {
	case leased == nil:
		return nil, refuse(core.ErrNotFound, fmt.Errorf("no lease on segment %d", id))
	case writable && !granted:
		return nil, refuse(core.ErrReadOnly, errors.New("no lease on it is writable"))
	}
	mode := os.O_RDONLY
	if writable {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(leased.file, mode, 0)
	if err != nil { // the test has ended, and its folder is gone
		return nil, refuse(core.ErrUnavailable, err)
	}
	return f, nil
}

// Release implements contract.Producer.
func (p *Producer) Release(ctx context.Context, ids ...contract.LeaseID) error {
	if err := ctx.Err(); err != nil {
		return &core.Error{Op: "release", Kind: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.leases, id)
	}
	return nil
}
