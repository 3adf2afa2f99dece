package program

import (
	"fmt"
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
	return nil
}

func (p *Program) configure(s kit.AdapterSettings) error {
	if s.Name == genericName {
		if len(s.DisabledQuirks) > 0 {
			return configError(fmt.Sprintf("adapter %q has no quirk %q", s.Name, s.DisabledQuirks[0]), "")
		}
		p.generic.copy = s.Copy
		return nil
	}
	var names []string
	for _, f := range p.frameworks {
		if names = append(names, f.name); f.name != s.Name {
			continue
		}
		var ids []string
		for _, q := range f.adapter.Quirks() {
			ids = append(ids, string(q.ID))
		}
		for _, id := range s.DisabledQuirks {
			if !slices.Contains(ids, string(id)) {
				return configError(fmt.Sprintf("adapter %q has no quirk %q", s.Name, id),
					suggest.Remedy(string(id), slices.Values(ids), ""))
			}
		}
		f.copy, f.disabled = s.Copy, s.DisabledQuirks
		return nil
	}
	names = append(names, genericName)
	return configError(fmt.Sprintf("the plugin has no adapter %q", s.Name),
		suggest.Remedy(s.Name, slices.Values(names), "this plugin has: "+strings.Join(names, ", ")))
}

func configError(text, remedy string) error {
	return &core.Error{Op: "configure", Kind: core.ErrConfig, Err: fmt.Errorf("%s", text), Remedy: remedy}
}
