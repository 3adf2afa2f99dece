// Package settings checks what a host's user has configured for an adapter.
package settings

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

// Check refuses settings of quirks that the table does not have, and effects that they have not.
func Check(table []contract.Quirk, s contract.AdapterSettings) error {
	known := make(map[string][]string, len(table))
	for _, q := range table {
		known[string(q.ID)] = q.Choices
	}
	for _, id := range slices.Concat(s.DisabledQuirks, slices.Sorted(maps.Keys(s.QuirkEffects))) {
		choices, ok := known[string(id)]
		if !ok {
			return refuse(fmt.Errorf("adapter %q has no quirk %q", s.Name, id),
				prose.Remedy(string(id), slices.Values(slices.Sorted(maps.Keys(known))), ""))
		}
		if effect := s.QuirkEffects[id]; effect != "" && !slices.Contains(choices, effect) {
			return refuse(fmt.Errorf("quirk %q has no effect %q to choose", id, effect),
				prose.Remedy(effect, slices.Values(choices), "it has: "+cmp.Or(strings.Join(choices, ", "), "none")))
		}
	}
	return nil
}

// Unknown refuses settings of an adapter that is none of names.
func Unknown(s contract.AdapterSettings, names []string) error {
	return refuse(fmt.Errorf("the plugin has no adapter %q", s.Name),
		prose.Remedy(s.Name, slices.Values(names), "this plugin has: "+strings.Join(names, ", ")))
}

func refuse(cause error, remedy string) error {
	return &core.Error{Op: "configure", Kind: core.ErrConfig, Err: cause, Remedy: remedy}
}
