package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// State is what there is to say about a part in one word.
type State string

// The states.
const (
	Well   State = "ok"
	Wrong  State = "wrong"
	Absent State = "absent" // not installed, or without the GPU that it needs, which is nobody's fault
)

// Part is what was found of one part: the machine, the interpreter, a framework. Scripts depend on the
// keys of its JSON.
type Part struct {
	Name        string `json:"part"`
	State       State  `json:"state"`
	Version     string `json:"version"`
	Interpreter string `json:"interpreter"` // "CPython 3.11.7 (/usr/bin/python3)"
	Plugin      string `json:"plugin"`      // its name and version
	SharedHeap  string `json:"shared_heap"` // "on", or why not

	Tried    []Trial        `json:"tried"`
	Routes   map[string]int `json:"routes"` // of the arrays that were tried; "refused" counts those that should be
	Quirks   []Quirk        `json:"quirks"` // those in force
	Problems []Problem      `json:"problems"`
	Notes    []Problem      `json:"notes"` // what is not wrong, but could be better
}

// Trial is one array that was looked at.
type Trial struct {
	Name         string  `json:"name"`
	Route        string  `json:"route"`        // "" if it was refused
	Reason       string  `json:"reason"`       // why it was copied or refused
	Milliseconds float64 `json:"milliseconds"` // until the host had it
	Written      bool    `json:"written"`      // Python saw what the host wrote into it
	Well         bool    `json:"ok"`           // it came as it should, or was refused as it should be
}

// Quirk is a quirk that is in force.
type Quirk struct {
	ID   core.QuirkID `json:"id"`
	Seen bool         `json:"seen"` // it took part when its witness was looked at
}

// Problem is something wrong, and what to do about it.
type Problem struct {
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

func newPart(name string) *Part {
	return &Part{
		Name: name, State: Well,
		Tried: []Trial{}, Routes: map[string]int{}, Quirks: []Quirk{}, Problems: []Problem{}, Notes: []Problem{}, // JSON has no nil
	}
}

func (p *Part) wrong(message, remedy string) {
	p.State = Wrong
	p.Problems = append(p.Problems, Problem{message, remedy})
}

// blame makes the end of a program a problem. alone is the command that shows whether it does without us.
func (p *Part) blame(err error, alone string) {
	message, remedy, _ := wordsOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		remedy = "raise --timeout if the machine is only slow"
	case p.Name == "interpreter":
	case errors.Is(err, core.ErrPython):
		remedy = "mend the installation until this works: " + alone
	case remedy == "":
		remedy = "see whether this works: " + alone
	}
	p.wrong(message, remedy)
}

// wordsOf takes an error apart, and leaves out what the doctor was doing, with which program of its own.
func wordsOf(err error) (message, remedy string, quirk core.QuirkID) {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err.Error(), "", ""
	}
	return (&core.Error{Kind: e.Kind, Err: e.Err}).Error(), e.Remedy, e.Quirk
}

// judge compares what became of each array with what should have. What is wrong with several arrays alike
// is said once.
func (p *Part) judge(r result) {
	heap := r.info.SharedHeap == "on"
	var problems []Problem
	names := make(map[Problem][]string)
	for _, o := range r.views {
		t, problem := p.trial(o, heap)
		p.Tried = append(p.Tried, t)
		switch {
		case t.Route != "":
			p.Routes[t.Route]++
		case t.Well:
			p.Routes["refused"]++
		}
		if t.Well {
			continue
		}
		if names[problem] == nil {
			problems = append(problems, problem)
		}
		names[problem] = append(names[problem], t.Name)
	}
	for _, problem := range problems {
		p.wrong(strings.Join(names[problem], ", ")+": "+problem.Message, problem.Remedy)
	}
	if len(r.views) == 0 && len(r.said.Arrays) > 0 {
		p.wrong("none of its arrays can be made: "+r.said.Arrays[0].Absent, "mend the installation")
	}
}

// trial judges one array, and says what is wrong if it is not well. A witness of a quirk that is not in
// force may be refused or not.
func (p *Part) trial(o outcome, heap bool) (t Trial, problem Problem) {
	t = Trial{Name: o.Name, Milliseconds: float64(o.took.Microseconds()) / 1000, Written: o.written, Well: true}
	q := slices.IndexFunc(p.Quirks, func(q Quirk) bool { return q.ID == o.Quirk })
	say := func(message, remedy string) { t.Well, problem = false, Problem{message, remedy} }
	if o.err != nil {
		t.Reason = core.Category(o.err)
		if message, remedy, quirk := wordsOf(o.err); !o.Refused || q >= 0 && quirk != o.Quirk {
			say(message, remedy)
		}
	} else {
		t.Route = string(o.route)
		if o.route == contract.RouteStaged {
			t.Reason = string(o.reason)
		}
		switch {
		case o.Refused && q >= 0:
			say(fmt.Sprintf("can be viewed, though %s is in force", o.Quirk), reportRemedy)
		case o.differ != "":
			say(o.differ, reportRemedy)
		case o.Shared && heap && o.route == contract.RouteStaged:
			say(fmt.Sprintf("copied, though not small (%v)", o.reason), copiedRemedy)
		}
	}
	if q >= 0 && (slices.Contains(o.quirks, o.Quirk) || t.Well && o.Refused) {
		p.Quirks[q].Seen = true
	}
	return t, problem
}

const (
	reportRemedy = "report this, with the output of ndbridge doctor --json"
	copiedRemedy = `if another library than usual allocates its arrays, name it in shared_heap_libraries ("*" is any)`
)
