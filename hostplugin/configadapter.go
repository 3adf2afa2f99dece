package hostplugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/prose"
)

func (c *checker) adapter(at place, a *Adapter) {
	known, all := adaptersOf(c.plugins)
	switch first := slices.IndexFunc(c.cfg.Adapters, func(b Adapter) bool { return b.Name == a.Name }); {
	case a.Name == "" && c.ranges != nil: // the decoder has said that the name is missing
	case first < at.Index:
		c.errorf(at, "Duplicate adapter", "There is another block for adapter %q%s.", a.Name, c.elsewhere("adapter", first))
	case all && !slices.Contains(known, a.Name):
		text := fmt.Sprintf("The plugins of this configuration hold these adapters: %s.", strings.Join(known, ", "))
		if near := prose.Nearest(a.Name, slices.Values(known)); near != "" {
			text = fmt.Sprintf("Did you mean %q? %s", near, text)
		}
		c.errorf(at, fmt.Sprintf("Unknown adapter %q", a.Name), "%s", text)
	}
	if !slices.Contains([]contract.CopyPolicy{"", contract.CopyIfNeeded, contract.CopyNever}, a.Copy) {
		c.errorf(at.At("copy"), "Invalid value", "Copy must be one of contract's copy policies, not %q.", a.Copy)
	}
	if !slices.Contains([]contract.SyncPolicy{"", contract.SyncDevice, contract.SyncStream}, a.Sync) {
		c.errorf(at.At("sync"), "Invalid value", "Sync must be one of contract's sync policies, not %q.", a.Sync)
	}
	for i, q := range a.Quirks {
		here := at.At("quirk").Nth(i)
		if !c.quirk(here, a, i, q) || !all || !slices.Contains(known, a.Name) {
			continue
		}
		if m := checkQuirk(a.Name, q.ID, q.Effect); m != nil {
			if m.InEffect {
				here = here.Key(here.Item + ".effect")
			}
			c.errorf(here, m.Summary, "%s", m.Detail)
		}
	}
}

// plugins goes through the plugins of all programs.
func (c *checker) plugins(yield func(string) bool) {
	for i := range c.cfg.Programs {
		if !yield(c.cfg.Programs[i].plugin()) {
			return
		}
	}
}

// quirk checks what can be said of a quirk without its adapter's table, and reports whether it could be one.
func (c *checker) quirk(at place, a *Adapter, i int, q QuirkSetting) bool {
	prefix, rest, ok := strings.Cut(string(q.ID), ".")
	if own, is := strings.CutPrefix(string(q.ID), a.Name+"."); is { // a name may have dots too
		prefix, rest = a.Name, own
	}
	switch {
	case q.ID == "" && c.ranges != nil: // the decoder has said that the name is missing
	case slices.IndexFunc(a.Quirks, func(b QuirkSetting) bool { return b.ID == q.ID }) < i:
		c.errorf(at, "Duplicate quirk", "The quirk %q is set twice.", q.ID)
	case !ok || rest == "":
		c.errorf(at, "Invalid quirk", "A quirk's name has two parts, as in %q; got %q.",
			a.Name+".some-quirk", q.ID)
	case prefix != a.Name && a.Name != "":
		c.errorf(at, "Quirk of another adapter", "%q belongs into the block of adapter %q, or should be %q.",
			q.ID, prefix, a.Name+"."+rest)
	case q.Disabled && q.Effect != "":
		c.errorf(at.Key(at.Item+".effect"), "Effect of nothing", "The quirk %q is switched off: it has no effect.", q.ID)
	default:
		return true
	}
	return false
}
