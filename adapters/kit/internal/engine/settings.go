package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// Configure takes the host's settings. An adapter or a quirk that the plugin does not have is an
// error that wraps core.ErrConfig. It must be called before anything is leased.
func (p *Program) Configure(s contract.Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range s.Adapters {
		if err := p.configure(a); err != nil {
			return err
		}
	}
	p.name = s.Program
	p.router.Configure(s)
	return nil
}

func (p *Program) configure(s contract.AdapterSettings) error {
	if s.Name == genericName {
		if err := checkSettings(nil, s); err != nil {
			return err
		}
		p.generic.copy, p.generic.sync = s.Copy, s.Sync
		return nil
	}
	var names []string
	for _, f := range p.frameworks {
		if names = append(names, f.name); f.name != s.Name {
			continue
		}
		if err := checkSettings(f.adapter.Quirks(), s); err != nil {
			return err
		}
		f.copy, f.sync, f.disabled, f.chosen = s.Copy, s.Sync, s.DisabledQuirks, s.QuirkEffects
		f.enforce()
		return nil
	}
	return unknownAdapter(s, append(names, genericName))
}

// checkSettings refuses settings of quirks that the table does not have, and effects that they have not.
func checkSettings(table []contract.Quirk, s contract.AdapterSettings) error {
	known := make(map[string][]string, len(table))
	for _, q := range table {
		known[string(q.ID)] = q.Choices
	}
	for _, id := range slices.Concat(s.DisabledQuirks, slices.Sorted(maps.Keys(s.QuirkEffects))) {
		choices, ok := known[string(id)]
		if !ok {
			return refuseSettings(fmt.Errorf("adapter %q has no quirk %q", s.Name, id),
				prose.Remedy(string(id), slices.Values(slices.Sorted(maps.Keys(known))), ""))
		}
		if effect := s.QuirkEffects[id]; effect != "" && !slices.Contains(choices, effect) {
			return refuseSettings(fmt.Errorf("quirk %q has no effect %q to choose", id, effect),
				prose.Remedy(effect, slices.Values(choices), "it has: "+cmp.Or(strings.Join(choices, ", "), "none")))
		}
	}
	return nil
}

// unknownAdapter refuses settings of an adapter that is none of names.
func unknownAdapter(s contract.AdapterSettings, names []string) error {
	return refuseSettings(fmt.Errorf("the plugin has no adapter %q", s.Name),
		prose.Remedy(s.Name, slices.Values(names), "this plugin has: "+strings.Join(names, ", ")))
}

func refuseSettings(cause error, remedy string) error {
	return &core.Error{Op: "configure", Kind: core.ErrConfig, Err: cause, Remedy: remedy}
}
