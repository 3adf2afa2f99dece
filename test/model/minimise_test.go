package model

import (
	"context"
	"errors"
	"strings"
	"time"
)

// minimise cuts a failing sequence down to events that are all needed (delta debugging), for as long as the
// budget lasts. fails says whether a sequence fails in the same way.
func minimise(events []event, budget time.Duration, fails func([]event) bool) []event {
	deadline := time.Now().Add(budget)
	for size := len(events) / 2; size >= 1; {
		shorter := false
		for at := 0; at < len(events) && time.Now().Before(deadline); {
			end := min(at+size, len(events))
			without := append(append([]event(nil), events[:at]...), events[end:]...)
			if fails(without) {
				events, shorter = without, true
			} else {
				at = end
			}
		}
		if time.Now().After(deadline) {
			break
		}
		if size /= 2; size == 0 && shorter {
			size = 1
		}
	}
	return events
}

// reproducer runs sequences to see whether they fail in one way.
type reproducer struct {
	ctx    context.Context //nolint:containedctx // of the test that it is a part of
	setup  setup
	script string
	kind   string // of the failure that is looked for
	tries  int    // how often a sequence is run that does not fail
	single bool   // each step is told before the next one is run
	rig    *rig   // nil: the program is to be started anew
	last   error
	told   []event
	story  []string
}

func (p *reproducer) fails(events []event) bool {
	for range p.tries {
		if p.rig == nil {
			rig, err := startRig(p.ctx, p.setup, p.script)
			if err != nil {
				return false
			}
			p.rig = rig
			p.rig.single = p.single
		}
		err := p.rig.run(p.ctx, events)
		if err == nil {
			continue
		}
		story, told := p.rig.story, p.rig.told
		f, ok := errors.AsType[*failure](err)
		if !ok || f.kind == died || f.kind == leaks {
			p.close() // it is of no use any more
		}
		if ok && f.kind == p.kind {
			p.last, p.story, p.told = err, story, told
			return true
		}
	}
	return false
}

// again runs a sequence, several times if it must, and remembers whether that is needed. What is told after it are
// statements.
func (p *reproducer) again(events []event) bool {
	p.single = p.kind == died
	for _, p.tries = range []int{1, 8} {
		if p.fails(events) {
			return true
		}
	}
	return p.fresh(events)
}

// fresh runs a sequence in a program that is started anew.
func (p *reproducer) fresh(events []event) bool {
	p.close()
	return p.fails(events)
}

func (p *reproducer) close() {
	if p.rig != nil {
		p.rig.close()
		p.rig = nil
	}
}

// report tells a failure as a program.
func report(story []string, err error) string {
	return "from helpers import *\nd, l, o, q = {}, [None, None], Node(), []\no.n = Node()\n" + strings.Join(story, "\n") + "\n# " +
		strings.ReplaceAll(err.Error(), "\n", "\n# ")
}
