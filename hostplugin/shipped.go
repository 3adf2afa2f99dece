package hostplugin

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/quirks"
)

// What comes with ndbridge is known before anything runs: the plugins, the adapters that each holds, and the quirks of
// those.
const (
	// defaultPlugin is the plugin that holds all adapters.
	defaultPlugin = "all"
	// genericAdapter is the adapter of objects that no other one claims. Every plugin for Python has it.
	genericAdapter = "generic"
)

// shippedAdapters lists the adapters that a plugin holds, or reports false if it does not come with ndbridge.
func shippedAdapters(plugin string) (names []string, ok bool) {
	for _, t := range quirks.Tables() {
		if plugin == defaultPlugin || plugin == t.Framework {
			names = append(names, t.Framework)
		}
	}
	return append(names, genericAdapter), len(names) > 0
}

// adaptersOf lists, in order, the adapters that plugins hold together. It reports false if one of them does
// not come with ndbridge: what it holds cannot be known before it runs. No plugins stand for the default.
func adaptersOf(plugins iter.Seq[string]) (names []string, ok bool) {
	set := make(map[string]struct{})
	for plugin := range plugins {
		held, ok := shippedAdapters(plugin)
		if !ok {
			return nil, false
		}
		for _, a := range held {
			set[a] = struct{}{}
		}
	}
	if len(set) == 0 {
		return shippedAdapters(defaultPlugin)
	}
	return slices.Sorted(maps.Keys(set)), true
}

// quirkMistake is what is wrong with the setting of a quirk, in the words of a diagnostic.
type quirkMistake struct {
	Summary, Detail string
	InEffect        bool // not in the quirk's name
}

// checkQuirk looks a quirk up in the table of an adapter that comes with ndbridge, and in the quirk its
// effect, if one is chosen. It gives nil if nothing is wrong.
func checkQuirk(adapter string, id core.QuirkID, effect string) *quirkMistake {
	choices := make(map[string][]string)
	for _, t := range quirks.Tables() {
		for _, q := range t.Quirks {
			if t.Framework == adapter {
				choices[string(q.ID)] = q.Choices
			}
		}
	}
	has, known := choices[string(id)]
	switch {
	case len(choices) == 0:
		return &quirkMistake{fmt.Sprintf("Unknown quirk %q", id), fmt.Sprintf("The adapter %q has none.", adapter), false}
	case !known:
		text := fmt.Sprintf("The command ndbridge quirks %s lists those that there are.", adapter)
		if near := prose.Nearest(string(id), slices.Values(slices.Sorted(maps.Keys(choices)))); near != "" {
			text = fmt.Sprintf("Did you mean %q? %s", near, text)
		}
		return &quirkMistake{fmt.Sprintf("Unknown quirk %q", id), text, false}
	case effect == "" || slices.Contains(has, effect):
		return nil
	case len(has) == 0:
		text := fmt.Sprintf("The quirk %q has no other effect: it can only be switched off, with enabled = false.", id)
		return &quirkMistake{"No effect to choose", text, true}
	}
	text := fmt.Sprintf(`effect must be "%s", not %q.`, strings.Join(has, `" or "`), effect)
	if near := prose.Nearest(effect, slices.Values(has)); near != "" {
		text += fmt.Sprintf(" Did you mean %q?", near)
	}
	return &quirkMistake{"Invalid value", text, true}
}
