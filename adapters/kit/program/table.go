package program

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Rule is a quirk together with what it does to the plan for an object of which the facts F are
// known.
type Rule[F any] struct {
	contract.Quirk
	When func(f *F) bool     // nil: for every object
	Edit func(p *Plan, f *F) // nil: the rule is about [Importer.Import], which asks for its effect
	// Instead holds, for a quirk with Choices, what those but the first do in the place of Edit.
	Instead map[string]func(p *Plan, f *F)
}

// Table is what an adapter knows about its framework as data. Adapters embed it: it gives them the
// framework's name and the quirks, and lets the rules edit their plans.
type Table[F any] struct {
	framework string
	rules     []Rule[F]
}

// NewTable makes the table of a framework. The rules edit a plan in the order in which they are given;
// those of one group belong together, and each group is a function of a readable size. The rules'
// Framework need not be set.
func NewTable[F any](framework string, groups ...[]Rule[F]) Table[F] {
	t := Table[F]{framework: framework, rules: slices.Concat(groups...)}
	for i := range t.rules {
		t.rules[i].Framework = framework
	}
	return t
}

// Framework implements [Adapter].
func (t *Table[F]) Framework() string { return t.framework }

// Quirks implements [Adapter].
func (t *Table[F]) Quirks() []contract.Quirk {
	quirks := make([]contract.Quirk, len(t.rules))
	for i, r := range t.rules {
		quirks[i] = r.Quirk
	}
	return quirks
}

// Edit lets the rules that are in force edit a plan, up to the first that refuses.
func (t *Table[F]) Edit(p *Plan, env *Env, facts *F) {
	for _, r := range t.rules {
		if r.Edit == nil || !env.InForce(r.ID) || r.When != nil && !r.When(facts) {
			continue
		}
		edit := r.Edit
		if instead, ok := r.Instead[env.Quirks[r.ID]]; ok {
			edit = instead
		}
		edit(p, facts)
		p.Applied = append(p.Applied, r.Quirk)
		if p.Refuse != nil {
			p.Refuse.Quirk, p.Refuse.Remedy = r.ID, cmp.Or(p.Refuse.Remedy, r.Remedy)
			return
		}
	}
}

// Refusef makes an error of a category and a cause the plan's answer. The remedy is the rule's, unless
// the edit sets another.
func (p *Plan) Refusef(kind error, format string, args ...any) {
	p.Refuse = &core.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// WithoutKeywords is the edit of quirks that say that __dlpack__ does not know the keywords that came
// with DLPack 1.
func WithoutKeywords[F any](p *Plan, _ *F) { p.DLPack.MaxVersion, p.DLPack.Copy = nil, nil }

// WithoutStream is the edit of quirks that say that __dlpack__ takes no stream but None.
func WithoutStream[F any](p *Plan, _ *F) { p.DLPack.Stream = nil }

// UnsignedReadOnly is the edit of quirks that say that arrays are immutable, and the capsules of a kind
// that cannot say so.
func UnsignedReadOnly[F any](p *Plan, _ *F) { p.DLPack.UnsignedReadOnly = true }
