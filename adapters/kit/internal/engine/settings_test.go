package engine

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// adapterOfTables has a table of quirks and no framework.
type adapterOfTables struct{}

func (adapterOfTables) Framework() string { return "torch" }

func (adapterOfTables) Quirks() []contract.Quirk {
	return []contract.Quirk{{ID: "torch.layouts"}, {ID: "torch.requires-grad", Choices: []string{"detach", "refuse"}}}
}

func (adapterOfTables) Owns(*py.GIL, *program.Env, py.Object) (bool, error) { return false, nil }

func (adapterOfTables) Plan(*py.GIL, *program.Env, py.Object) (program.Plan, error) {
	return program.Plan{}, nil
}

// TestSettings holds what of a host's settings is refused, and with which remedy.
func TestSettings(t *testing.T) {
	t.Parallel()
	const grad core.QuirkID = "torch.requires-grad"
	for name, c := range map[string]struct {
		settings contract.AdapterSettings
		err      string
	}{
		"nothing":  {contract.AdapterSettings{Name: "torch"}, ""},
		"off":      {contract.AdapterSettings{Name: "torch", DisabledQuirks: []core.QuirkID{"torch.layouts", grad}}, ""},
		"choice":   {contract.AdapterSettings{Name: "torch", QuirkEffects: map[core.QuirkID]string{grad: "refuse"}}, ""},
		"generic":  {contract.AdapterSettings{Name: "generic", Copy: contract.CopyNever}, ""},
		"adapter":  {contract.AdapterSettings{Name: "toch"}, `configure: bad configuration: the plugin has no adapter "toch"; did you mean "torch"?`},
		"adapters": {contract.AdapterSettings{Name: "fortran"}, `configure: bad configuration: the plugin has no adapter "fortran"; this plugin has: torch, generic`},
		"quirk": {
			contract.AdapterSettings{Name: "torch", DisabledQuirks: []core.QuirkID{"torch.layout"}},
			`configure: bad configuration: adapter "torch" has no quirk "torch.layout"; did you mean "torch.layouts"?`,
		},
		"quirk with an effect": {
			contract.AdapterSettings{Name: "torch", QuirkEffects: map[core.QuirkID]string{"torch.no": "refuse"}},
			`configure: bad configuration: adapter "torch" has no quirk "torch.no"`,
		},
		"quirk of none": {
			contract.AdapterSettings{Name: "generic", DisabledQuirks: []core.QuirkID{grad}},
			`configure: bad configuration: adapter "generic" has no quirk "torch.requires-grad"`,
		},
		"effect": {
			contract.AdapterSettings{Name: "torch", QuirkEffects: map[core.QuirkID]string{grad: "reroute"}},
			`configure: bad configuration: quirk "torch.requires-grad" has no effect "reroute" to choose; it has: detach, refuse`,
		},
		"effect of one without": {
			contract.AdapterSettings{Name: "torch", QuirkEffects: map[core.QuirkID]string{"torch.layouts": "refuse"}},
			`configure: bad configuration: quirk "torch.layouts" has no effect "refuse" to choose; it has: none`,
		},
	} {
		p := &Program{frameworks: []*framework{{name: "torch", adapter: adapterOfTables{}}}, router: routes.NewRouter(nil)}
		err := p.Configure(contract.Settings{Program: "camera", Adapters: []contract.AdapterSettings{c.settings}})
		if c.err == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != c.err || !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: %v, want %s", name, err, c.err)
		}
	}
}

// TestSettingsComeLate: quirks that a host disables are not in force, though the framework was known before the host's settings came.
func TestSettingsComeLate(t *testing.T) {
	t.Parallel()
	f := &framework{name: "torch", adapter: adapterOfTables{}, version: "2.6.0"}
	f.enforce()
	p := &Program{frameworks: []*framework{f}, router: routes.NewRouter(nil)}
	off := contract.AdapterSettings{Name: "torch", DisabledQuirks: []core.QuirkID{"torch.layouts"}}
	if err := p.Configure(contract.Settings{Adapters: []contract.AdapterSettings{off}}); err != nil {
		t.Fatal(err)
	}
	_, layouts := f.inForce["torch.layouts"]
	if _, grad := f.inForce["torch.requires-grad"]; layouts || !grad {
		t.Errorf("in force: %v", f.inForce)
	}
}
