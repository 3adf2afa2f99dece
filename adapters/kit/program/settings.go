package program

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program/settings"
	"github.com/ndbridge/ndbridge/core/contract"
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
	p.router.HostGPUs(s.GPUs)
	p.router.CopyFiles(s.CopyMappedFiles)
	return nil
}

func (p *Program) configure(s contract.AdapterSettings) error {
	if s.Name == genericName {
		if err := settings.Check(nil, s); err != nil {
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
		if err := settings.Check(f.adapter.Quirks(), s); err != nil {
			return err
		}
		f.copy, f.sync, f.disabled, f.chosen = s.Copy, s.Sync, s.DisabledQuirks, s.QuirkEffects
		return nil
	}
	return settings.Unknown(s, append(names, genericName))
}
