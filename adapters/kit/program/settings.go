package program

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/suggest"
)

// Configure takes the host's settings. An adapter or a quirk that the plugin does not have is an
// error that wraps core.ErrConfig. It must be called before anything is leased.
func (p *Program) Configure(s kit.Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range s.Adapters {
		if err := p.configure(a); err != nil {
			return err
		}
	}
	p.name = s.Program
	p.router.HostGPUs(s.GPUs)
	return nil
}

func (p *Program) configure(s kit.AdapterSettings) error {
	if s.Name == genericName {
		if err := checkQuirks(nil, s); err != nil {
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
		if err := checkQuirks(f.adapter.Quirks(), s); err != nil {
			return err
		}
		f.copy, f.sync, f.disabled, f.chosen = s.Copy, s.Sync, s.DisabledQuirks, s.QuirkEffects
		return nil
	}
	names = append(names, genericName)
	return configError(fmt.Sprintf("the plugin has no adapter %q", s.Name),
		suggest.Remedy(s.Name, slices.Values(names), "this plugin has: "+strings.Join(names, ", ")))
}

// checkQuirks refuses settings of quirks that the table does not have, and effects that they have not.
func checkQuirks(table []core.Quirk, s kit.AdapterSettings) error {
	known := make(map[string][]string, len(table))
	for _, q := range table {
		known[string(q.ID)] = q.Choices
	}
	for _, id := range slices.Concat(s.DisabledQuirks, slices.Sorted(maps.Keys(s.QuirkEffects))) {
		choices, ok := known[string(id)]
		if !ok {
			return configError(fmt.Sprintf("adapter %q has no quirk %q", s.Name, id),
				suggest.Remedy(string(id), slices.Values(slices.Sorted(maps.Keys(known))), ""))
		}
		if effect := s.QuirkEffects[id]; effect != "" && !slices.Contains(choices, effect) {
			return configError(fmt.Sprintf("quirk %q has no effect %q to choose", id, effect),
				suggest.Remedy(effect, slices.Values(choices), "it has: "+cmp.Or(strings.Join(choices, ", "), "none")))
		}
	}
	return nil
}

func configError(text, remedy string) error {
	return &core.Error{Op: "configure", Kind: core.ErrConfig, Err: fmt.Errorf("%s", text), Remedy: remedy}
}
