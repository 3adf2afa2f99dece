package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// Sibling makes a program for one more host: with settings, leases, publications and calls of its own. It shares with p what the process
// has once: the interpreter, the heap, and the main thread. The caller must [Program.End] it.
func (p *Program) Sibling() *Program {
	adapters := make([]program.Adapter, len(p.frameworks))
	for i, f := range p.frameworks {
		adapters[i] = f.adapter
	}
	return newProgram(&Program{interp: p.interp, plugin: p.plugin, heapState: p.heapState, heap: p.heap, main: p.main}, adapters)
}

// Follow makes p publish what other has published, and nothing else: under all names, or only those that are given. What has changed
// becomes the next version all at once. What p cannot publish, as its host wants its arrays, is published by nothing but the object, and
// the host learns why when it asks. It must be called with the GIL held. What other publishes meanwhile is published, too.
func (p *Program) Follow(g *py.GIL, other *Program, only ...string) {
	for i, name := range only {
		if path, err := names.Parse(name); err == nil {
			only[i] = path.String()
		}
	}
	for behind := p.behind(other, only); len(behind) > 0; behind = p.behind(other, only) {
		if err := g.Nested(func() error {
			var values []Named
			over := make(map[string]*published.Publication)
			for _, name := range behind {
				pub := other.published.Get(g, name)
				if pub == nil {
					over[name] = nil
					continue
				}
				if pub.Mark != nil {
					defer pub.Mark.Close()
				}
				values = append(values, Named{Name: name, Object: pub.Object})
			}
			p.put(g, over)
			return p.Adopt(g, values...)
		}); err != nil {
			return // never: other has published under these names
		}
	}
}

// behind gives the names that other has published otherwise than p. No names are all names.
func (p *Program) behind(other *Program, among []string) (behind []string) {
	if len(among) == 0 {
		among = slices.Concat(other.published.Names(), p.published.Names())
	}
	seen := make(map[string]bool, len(among))
	for _, name := range among {
		if seen[name] {
			continue
		}
		seen[name] = true
		ours, theirs := p.published.Last(name), other.published.Last(name)
		if (ours == nil) != (theirs == nil) || ours != nil && ours.Object != theirs.Object {
			behind = append(behind, name)
		}
	}
	return behind
}

// Lets reports whether the host lets the program call a function of that name.
func (p *Program) Lets(name string) bool {
	names, err := p.HostFunctions()
	return err == nil && slices.Contains(names, name)
}

// Carries reports whether the thread that holds the GIL runs a function that the host has called.
func (p *Program) Carries(g *py.GIL) bool {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	return p.host.workers[g.ID()] != nil
}

// End gives back what is kept for the host, and leaves the interpreter as it is. No call is under way any more. The caller must not hold
// the GIL.
func (p *Program) End() error {
	if c := p.callee.Load(); c != nil {
		c.giveBack()
	}
	err := p.leases.Close(p.leasing.close()...)
	over := make(map[string]*published.Publication)
	for _, name := range p.published.Names() {
		over[name] = nil
	}
	_ = p.interp.Do(context.Background(), func(g *py.GIL) error { // it fails if the program ends
		p.put(g, over)
		return nil
	})
	p.holds.Flush()
	return errors.Join(err, p.router.Close())
}
