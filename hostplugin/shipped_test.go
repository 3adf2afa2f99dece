package hostplugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// TestAdapters holds which adapters are known before a plugin runs.
func TestAdapters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plugins []string
		want    string // of the names; "" is not known
	}{
		{[]string{"numpy"}, "generic numpy"},
		{[]string{"torch", "numpy", "torch"}, "generic numpy torch"},
		{[]string{"numpy", "./mine.so"}, ""},
		{[]string{"fortran"}, ""},
	} {
		names, ok := adaptersOf(slices.Values(c.plugins))
		if got := strings.Join(names, " "); got != c.want || ok != (c.want != "") {
			t.Errorf("%v hold %s, %v", c.plugins, got, ok)
		}
	}
	all, ok := shippedAdapters(defaultPlugin)
	if none, also := adaptersOf(slices.Values[[]string](nil)); !ok || !also || !slices.Equal(all, none) {
		t.Errorf("the default holds %v, no plugin %v", all, none)
	}
	for _, a := range []string{"numpy", "torch", "jax", "generic"} {
		if !slices.Contains(all, a) {
			t.Errorf("%s is not in %v", a, all)
		}
	}
}

// TestCheckQuirk holds which settings of quirks are mistakes. Their texts are in the golden files of the
// configuration.
func TestCheckQuirk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ adapter, id, effect, summary string }{
		{"torch", "torch.requires-grad", "", ""},
		{"torch", "torch.requires-grad", "refuse", ""},
		{"torch", "torch.requires-grad", "correct", "Invalid value"},
		{"torch", "torch.conj-bit", "refuse", "No effect to choose"},
		{"torch", "torch.conjbit", "", `Unknown quirk "torch.conjbit"`},
		{"numpy", "torch.conj-bit", "", `Unknown quirk "torch.conj-bit"`},
		{"generic", "generic.any", "", `Unknown quirk "generic.any"`},
	} {
		summary := ""
		if m := checkQuirk(c.adapter, core.QuirkID(c.id), c.effect); m != nil {
			summary = m.Summary
			if m.Detail == "" || m.InEffect != (c.effect != "") {
				t.Errorf("%+v: %+v", c, m)
			}
		}
		if summary != c.summary {
			t.Errorf("%+v: %q", c, summary)
		}
	}
}
