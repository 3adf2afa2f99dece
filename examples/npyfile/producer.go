package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// framework is whose arrays these are, and the adapter's name in the host's configuration.
const framework = "npyfile"

// producer is a contract.Producer over a folder: it is all that a plugin has to write itself.
type producer struct {
	kit.Leases // Descriptor and Release

	folder folder

	mu      sync.Mutex
	program string
	copy    contract.CopyPolicy
}

var (
	_ contract.Producer   = (*producer)(nil)
	_ contract.Configurer = (*producer)(nil)
)

func newProducer(dir string) *producer { return &producer{folder: folder(dir)} }

// Configure implements contract.Configurer: its error is what the host says when it cannot start.
func (p *producer) Configure(s contract.Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program = s.Program
	for _, a := range s.Adapters {
		if a.Name == framework {
			p.copy = a.Copy
		}
	}
	_, err := p.folder.files()
	return err
}

// Info implements contract.Producer.
func (p *producer) Info(ctx context.Context) (contract.Info, error) {
	if err := ctx.Err(); err != nil {
		return contract.Info{}, &core.Error{Op: "info", Kind: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return contract.Info{
		Program: p.program, Plugin: "npyfile " + version, PID: os.Getpid(), SharedHeap: "not needed: arrays lie in files",
		Adapters: []string{framework}, Leases: p.Len(),
	}, nil
}

// Arrays implements contract.Producer.
func (p *producer) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		items, err := p.folder.list()
		if err != nil {
			yield(contract.Entry{}, err)
			return
		}
		for _, it := range items {
			if ctx.Err() != nil {
				break
			}
			if !yield(entryOf(it), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(contract.Entry{}, &core.Error{Op: "list", Kind: err})
		}
	}
}

func entryOf(it item) contract.Entry {
	e := contract.Entry{Name: it.name, Framework: framework, Published: true}
	a, err := it.open()
	if err == nil {
		e.Layout = a.layout
		err = a.file.Close()
	}
	if err != nil {
		e.Err = about(it.name, err)
	}
	return e
}

// Lease implements contract.Producer. It does not wait: nobody says that a missing file will come.
func (p *producer) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	if err := ctx.Err(); err != nil {
		return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: err}
	}
	it, ok, err := p.folder.find(name)
	if err == nil && !ok {
		err = &core.Error{Kind: core.ErrNotFound, Err: fmt.Errorf("no such file in %s", p.folder), Remedy: "list the arrays"}
	}
	if err != nil {
		return contract.Lease{}, about(name, err)
	}
	if req.Writable {
		return contract.Lease{}, about(name, &core.Error{Kind: core.ErrReadOnly, Err: errors.New("files are served for reading")})
	}
	a, err := it.open()
	if err != nil {
		return contract.Lease{}, about(name, err)
	}
	l, err := p.grant(a, req) //nolint:contextcheck // a lease outlives the call
	if err != nil {
		return contract.Lease{}, about(name, errors.Join(err, a.file.Close()))
	}
	return l, a.file.Close()
}

// grant leases an opened array by the route that fits it.
func (p *producer) grant(a *array, req contract.Request) (contract.Lease, error) {
	l := contract.Lease{Layout: a.layout, Fence: contract.Ready{}, Framework: framework}
	switch {
	case a.layout.Len() == 0:
		l.Route = contract.RouteEmpty
		return p.Grant(l, kit.Memory{}, nil)
	case a.data == nil:
		l.Route = contract.RouteMappedFile
		segment, err := kit.FileSegment(a.file)
		if err != nil {
			return contract.Lease{}, err
		}
		return p.Grant(l, kit.HostMemory(segment), nil)
	case p.refusesCopies(req):
		return contract.Lease{}, &core.Error{
			Kind: core.ErrNotShared, Reason: contract.ReasonConverted, Err: errors.New("the file has it compressed or unaligned"),
			Remedy: "save it with numpy.savez, or allow copies",
		}
	}
	data, err := a.data()
	if err != nil {
		return contract.Lease{}, err
	}
	segment, err := kit.DataSegment(data)
	if err != nil {
		return contract.Lease{}, err
	}
	l.Route, l.Reason = contract.RouteStaged, contract.ReasonConverted
	return p.Grant(l, kit.HostMemory(segment), nil)
}

func (p *producer) refusesCopies(req contract.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	policy := req.Copy
	if policy == "" {
		policy = p.copy
	}
	return policy == contract.CopyNever
}

// about gives an error the array's name. One without a category says that the file could not be read.
func about(name string, err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		named := *e
		named.Op, named.Object, named.Adapter = "lease", name, framework
		return &named
	}
	return &core.Error{Op: "lease", Object: name, Adapter: framework, Kind: core.ErrUnavailable, Err: err}
}
