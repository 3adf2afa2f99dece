package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/sharedheap"
)

// Program is the running Python program as a [contract.Producer] and a [contract.Waiter]. All methods are
// safe for concurrent use.
type Program struct {
	interp    *py.Interp
	plugin    string
	heapState func() string
	router    *routes.Router
	leases    kit.Leases
	heap      routes.Heap // nil: none
	holds     *holds.Keeper
	state     progress
	published published.Names
	leasing   leasing
	main      *mainThread // one for all of the process
	host      hostCalls
	refreshed atomic.Bool   // just now, with the GIL that somebody had anyway
	waiting   chan struct{} // has room for the looks that may wait for a GPU on threads that others need

	codec        atomic.Pointer[handoff.Codec] // nil: no host looks at offers
	descriptions atomic.Uint64                 // number of the last
	callee       atomic.Pointer[callee]        // nil: no host calls functions

	frameworks []*framework // as the adapters were given; the slice does not change
	generic    framework    // of objects that no adapter claims
	classes    arrayClasses

	mu   sync.Mutex // of what follows, and of the frameworks' fields
	name string
}

// framework is an adapter together with what is known of its framework in this program.
type framework struct {
	name    string
	adapter program.Adapter

	copy     contract.CopyPolicy
	sync     contract.SyncPolicy
	disabled []core.QuirkID
	chosen   map[core.QuirkID]string // effects of quirks that have a choice
	version  string                  // "" until the framework is loaded
	inForce  map[core.QuirkID]string // with their effects
}

var (
	_ contract.Producer = (*Program)(nil)
	_ contract.Waiter   = (*Program)(nil)
)

// New makes the program that runs in the interpreter, which stays the caller's. plugin is the name
// and version of the plugin file, for [contract.Info]. Of several adapters that claim an object, the
// first has it; objects that none claims are read by the protocols that they have.
func New(interp *py.Interp, plugin string, adapters ...program.Adapter) *Program {
	h, heapState := openHeap()
	return newProgram(&Program{interp: interp, plugin: plugin, heapState: heapState, heap: h, main: new(mainThread)}, adapters)
}

// newProgram completes a program of which the parts are there that concern the process as a whole.
func newProgram(p *Program, adapters []program.Adapter) *Program {
	p.router = routes.NewRouter(p.heap)
	p.holds = holds.New(p.interp)
	p.generic = framework{name: genericName}
	p.waiting = make(chan struct{}, maxWaiting)
	p.router.Hold()
	if c, ok := sharedheap.FindCaptures(); ok {
		p.router.GPU.Captures = c
	}
	for _, a := range adapters {
		p.frameworks = append(p.frameworks, &framework{name: a.Framework(), adapter: a})
	}
	return p
}

// Close ends all leases and gives their memory back. The caller must not hold the GIL.
func (p *Program) Close() error {
	err := p.leases.Close(p.leasing.close()...)
	p.holds.Close()
	p.published.CloseMarks()
	return errors.Join(err, p.router.Close())
}

// env gives what an adapter is told, or false if its framework is not loaded.
func (p *Program) env(g *py.GIL, f *framework) (*program.Env, bool, error) {
	module, ok := g.Loaded(moduleOf(f.adapter))
	if !ok {
		return nil, false, nil
	}
	p.mu.Lock()
	env := &program.Env{Module: module, Version: f.version, Quirks: f.inForce}
	p.mu.Unlock()
	if env.Version != "" {
		return env, true, nil
	}
	o, ok := g.Variable(module, versionOf(f.adapter))
	if !ok || !g.IsStr(o) {
		return nil, false, nil // no framework, or one that is just being imported, or is when the program first uses it
	}
	var err error
	if env.Version, err = g.Text(o); err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.version = env.Version
	f.enforce()
	env.Quirks = f.inForce
	return env, true, nil
}

// moduleOf names the module that an adapter's framework is.
func moduleOf(a program.Adapter) string {
	if p, ok := a.(program.Packaged); ok {
		return p.Module()
	}
	return a.Framework()
}

// versionOf names the attribute of that module that is the framework's version.
func versionOf(a program.Adapter) string {
	if v, ok := a.(program.Versioned); ok {
		return v.VersionName()
	}
	return "__version__"
}

// loadedAdapter is the adapter of a framework that is loaded, as something that not all adapters are.
type loadedAdapter[A any] struct {
	as  A
	env *program.Env
}

// loadedAs goes through the adapters of loaded frameworks that are an A. An error is why nobody knows whether a framework is loaded.
func loadedAs[A any](p *Program, g *py.GIL) iter.Seq2[loadedAdapter[A], error] {
	return func(yield func(loadedAdapter[A], error) bool) {
		for _, f := range p.frameworks {
			as, ok := f.adapter.(A)
			if !ok {
				continue
			}
			if env, ok, err := p.env(g, f); (ok || err != nil) && !yield(loadedAdapter[A]{as, env}, err) {
				return
			}
		}
	}
}

// enforce finds out which quirks are in force, once the version is known. The caller has the program's mu.
func (f *framework) enforce() {
	f.inForce = make(map[core.QuirkID]string)
	for _, q := range f.adapter.Quirks() {
		if f.version != "" && q.Applies(f.version) && !slices.Contains(f.disabled, q.ID) {
			f.inForce[q.ID] = f.chosen[q.ID]
		}
	}
}

// infoPatience is how long Info waits for the interpreter before it tells what it knew last.
const infoPatience = 200 * time.Millisecond

// Info implements [contract.Producer].
func (p *Program) Info(ctx context.Context) (contract.Info, error) {
	if err := ctx.Err(); err != nil {
		return contract.Info{}, about("info", "", "", err)
	}
	if p.refreshed.Swap(false) {
		return p.describe(), nil
	}
	short, cancel := context.WithTimeout(ctx, infoPatience)
	defer cancel()
	err := p.interp.Do(short, p.refresh)
	if ctx.Err() != nil {
		return contract.Info{}, about("info", "", "", err)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return contract.Info{}, about("info", "", "", err)
	}
	return p.describe(), nil
}

func (p *Program) describe() contract.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	implementation := p.interp.Implementation()
	if implementation == "cpython" {
		implementation = "CPython"
	}
	info := contract.Info{
		Program:     p.name,
		Plugin:      p.plugin,
		Interpreter: fmt.Sprintf("%s %s (%s)", implementation, p.interp.Version(), p.interp.Executable()),
		PID:         os.Getpid(),
		SharedHeap:  p.heapState(),
		Frameworks:  p.loaded(),
		Leases:      p.published.Leases(p.leases.Len()),
	}
	for _, f := range p.frameworks {
		info.Adapters = append(info.Adapters, f.name)
	}
	info.Adapters = append(info.Adapters, genericName)
	return info
}

// Learn finds out which frameworks are loaded, so that the next Info need not wait for the GIL.
func (p *Program) Learn(g *py.GIL) { p.refreshed.Store(p.refresh(g) == nil) }

// refresh finds out which frameworks are loaded now.
func (p *Program) refresh(g *py.GIL) error {
	for _, f := range p.frameworks {
		if _, _, err := p.env(g, f); err != nil {
			return err
		}
	}
	return nil
}

// loaded lists the frameworks that are known to be loaded.
func (p *Program) loaded() []contract.Framework {
	var out []contract.Framework
	for _, f := range p.frameworks {
		if f.version == "" {
			continue
		}
		found := contract.Framework{Name: f.name, Version: f.version}
		for _, q := range f.adapter.Quirks() {
			if _, ok := f.inForce[q.ID]; ok {
				found.Quirks = append(found.Quirks, q)
			}
		}
		out = append(out, found)
	}
	slices.SortFunc(out, func(a, b contract.Framework) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
