package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestJudge holds what is wrong with an array, and what is not.
func TestJudge(t *testing.T) {
	t.Parallel()
	const inForce, notInForce core.QuirkID = "x.here", "x.elsewhere"
	refusal := func(id core.QuirkID) error {
		return &core.Error{
			Op: "view", Program: "x", Object: `arrays["a"]`, Kind: core.ErrDType, Err: errors.New("objects"), Remedy: "convert it", Quirk: id,
		}
	}
	shared, staged := array{Name: "a", Shared: true}, array{Name: "a"}
	witness := func(id core.QuirkID, refused bool) array { return array{Name: "a", Quirk: id, Refused: refused} }
	for name, c := range map[string]struct {
		outcome outcome
		problem Problem
		routes  map[string]int
		seen    bool
	}{
		"shared":             {outcome: outcome{array: shared, route: contract.RouteSharedHeap}, routes: map[string]int{"shared-heap": 1}},
		"small":              {outcome: outcome{array: staged, route: contract.RouteStaged, reason: contract.ReasonBelowThreshold}, routes: map[string]int{"staged": 1}},
		"seen":               {outcome: outcome{array: witness(inForce, false), route: contract.RouteEmpty, quirks: []core.QuirkID{inForce}}, routes: map[string]int{"empty": 1}, seen: true},
		"unseen":             {outcome: outcome{array: witness(inForce, false), route: contract.RouteEmpty}, routes: map[string]int{"empty": 1}},
		"refused":            {outcome: outcome{array: witness(inForce, true), err: refusal(inForce)}, routes: map[string]int{"refused": 1}, seen: true},
		"refused elsewhere":  {outcome: outcome{array: witness(notInForce, true), err: refusal("")}, routes: map[string]int{"refused": 1}},
		"viewed elsewhere":   {outcome: outcome{array: witness(notInForce, true), route: contract.RouteEmpty}, routes: map[string]int{"empty": 1}},
		"copied":             {outcome: outcome{array: shared, route: contract.RouteStaged, reason: contract.ReasonOutsideHeap}, problem: Problem{"a: copied, though not small (outside-heap)", copiedRemedy}, routes: map[string]int{"staged": 1}},
		"other elements":     {outcome: outcome{array: staged, route: contract.RouteStaged, differ: "other elements than in Python"}, problem: Problem{"a: other elements than in Python", reportRemedy}, routes: map[string]int{"staged": 1}},
		"cannot be viewed":   {outcome: outcome{array: shared, err: refusal("x.other")}, problem: Problem{"a: wrong dtype: objects", "convert it"}, routes: map[string]int{}},
		"refused by another": {outcome: outcome{array: witness(inForce, true), err: refusal("x.other")}, problem: Problem{"a: wrong dtype: objects", "convert it"}, routes: map[string]int{}},
		"not refused":        {outcome: outcome{array: witness(inForce, true), route: contract.RouteEmpty}, problem: Problem{"a: can be viewed, though x.here is in force", reportRemedy}, routes: map[string]int{"empty": 1}},
		"no error of ours":   {outcome: outcome{array: staged, err: errors.New("odd")}, problem: Problem{"a: odd", ""}, routes: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPart("x")
			p.Quirks = append(p.Quirks, Quirk{ID: inForce})
			p.judge(result{info: contract.Info{SharedHeap: "on"}, said: report{Arrays: []array{c.outcome.array}}, views: []outcome{c.outcome}})
			var problems []Problem
			state := Well
			if c.problem.Message != "" {
				problems, state = []Problem{c.problem}, Wrong
			}
			if !slices.Equal(p.Problems, problems) || p.State != state || p.Tried[0].Well != (state == Well) {
				t.Errorf("%s, %+v, %+v", p.State, p.Problems, p.Tried)
			}
			if fmt.Sprint(p.Routes) != fmt.Sprint(c.routes) || p.Quirks[0].Seen != c.seen {
				t.Errorf("routes %v, seen %v", p.Routes, p.Quirks[0].Seen)
			}
		})
	}
}

// TestJudgeWithoutTheHeap holds that copies are as they should be where nothing can be shared.
func TestJudgeWithoutTheHeap(t *testing.T) {
	t.Parallel()
	p := newPart("x")
	a := array{Name: "a", Shared: true}
	p.judge(result{info: contract.Info{SharedHeap: "off: why not"}, said: report{Arrays: []array{a}}, views: []outcome{{array: a, route: contract.RouteStaged, reason: contract.ReasonHeapOff}}})
	if p.State != Well {
		t.Errorf("%+v", p.Problems)
	}
	if p.judge(result{said: report{Arrays: []array{{Name: "b", Absent: "ImportError: no"}}}}); p.State != Wrong {
		t.Error("a framework of which no array can be made is well")
	}
}

// TestJudgeOfMany holds that what is wrong with several arrays alike is said once.
func TestJudgeOfMany(t *testing.T) {
	t.Parallel()
	p := newPart("x")
	copied := func(name string, reason core.Reason) outcome {
		return outcome{array: array{Name: name, Shared: true}, route: contract.RouteStaged, reason: reason}
	}
	p.judge(result{info: contract.Info{SharedHeap: "on"}, views: []outcome{
		copied("a", contract.ReasonOutsideHeap), copied("b", contract.ReasonFrozen), copied("c", contract.ReasonOutsideHeap),
	}})
	want := []Problem{{"a, c: copied, though not small (outside-heap)", copiedRemedy}, {"b: copied, though not small (frozen-by-fork)", copiedRemedy}}
	if !slices.Equal(p.Problems, want) {
		t.Errorf("%+v", p.Problems)
	}
}

// TestBlame holds what is said of programs that end as they should not.
func TestBlame(t *testing.T) {
	t.Parallel()
	const alone = "python -c 'import x'"
	started := func(kind error, text, remedy string) error {
		return &core.Error{Op: "start", Program: "x", Kind: kind, Err: errors.New(text), Remedy: remedy}
	}
	for name, c := range map[string]struct {
		part string
		err  error
		want Problem
	}{
		"raises":      {"x", started(core.ErrPython, "ImportError: no", ""), Problem{"python error: ImportError: no", "mend the installation until this works: " + alone}},
		"crashes":     {"x", started(core.ErrUnavailable, "killed", ""), Problem{"unavailable: killed", "see whether this works: " + alone}},
		"hangs":       {"x", started(context.DeadlineExceeded, "no end within 1s", ""), Problem{"context deadline exceeded: no end within 1s", "raise --timeout if the machine is only slow"}},
		"interpreter": {"interpreter", started(core.ErrConfig, "none", "correct python"), Problem{"bad configuration: none", "correct python"}},
	} {
		p := newPart(c.part)
		if p.blame(c.err, alone); p.State != Wrong || !slices.Equal(p.Problems, []Problem{c.want}) {
			t.Errorf("%s: %+v", name, p.Problems)
		}
	}
}
