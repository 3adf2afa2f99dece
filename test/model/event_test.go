package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// event is one thing that happens to a program and its host. Any sequence of events is a valid one.
type event struct {
	kind eventKind
	name string // of the operation, or the arrays, with spaces between; or the statement
	n    uint64 // step: the seed; look: the looker; poke: what and where
	keep int    // the slot that the view is kept in, or that is meant; -1: none
	opt  string // look: how the view is asked for
}

type eventKind byte

const (
	step   eventKind = 's' // the program runs one operation
	text   eventKind = 'p' // the program runs a statement, that of an operation
	look   eventKind = 'l' // the host looks at some names, by one route
	listed eventKind = 'a' // the host lists all arrays
	poke   eventKind = 'w' // the host writes through a kept view
	drop   eventKind = 'c' // the host closes a kept view
	again  eventKind = 'r' // the host refreshes a kept view
	live   eventKind = 'v' // the host asks whether a kept view is live
)

// slots is how many views are kept at most.
const slots = 8

// The ways in which a view is asked for.
var lookOptions = []string{"-", "-", "-", "nocopy", "writable", "writable", "allow"}

// generate gives the events that follow from a seed, in bursts of steps with looks between them.
func generate(seed uint64, h *hello, lookers, n int) []event {
	rng := rand.New(rand.NewPCG(seed, 1))
	often := oftenLooked(rng, h)
	names := slices.Sorted(maps.Keys(h.Weights))
	total := 0.0
	for _, name := range names {
		total += h.Weights[name]
	}
	operation := func() string {
		x := rng.Float64() * total
		for _, name := range names {
			if x -= h.Weights[name]; x < 0 {
				return name
			}
		}
		return names[0]
	}
	var events []event
	for steps := 0; steps < n; {
		burst := 1 + rng.IntN(30)
		for range burst {
			events = append(events, event{kind: step, name: operation(), n: uint64(rng.Uint32()), keep: -1})
		}
		steps += burst
		for range 2 + rng.IntN(12) {
			events = append(events, hostEvent(rng, h, often, lookers))
		}
	}
	return events
}

// oftenLooked gives names, and several together, that the host looks at again and again.
func oftenLooked(rng *rand.Rand, h *hello) (often []string) {
	for i := range 10 {
		from := h.Paths
		if i%2 == 0 {
			from = h.Published
		}
		names := make([]string, 1+i%3)
		for j := range names {
			names[j] = from[rng.IntN(len(from))]
		}
		often = append(often, strings.Join(names, " "))
	}
	return often
}

func hostEvent(rng *rand.Rand, h *hello, often []string, lookers int) event {
	e := event{kind: look, keep: rng.IntN(slots), opt: "-"}
	switch x := rng.IntN(100); {
	case x < 3:
		return event{kind: listed, keep: -1}
	case x < 10:
		e.kind, e.n = poke, uint64(rng.Uint32())
		return e
	case x < 14:
		e.kind = drop
		return e
	case x < 20:
		e.kind = again
		return e
	case x < 26:
		e.kind = live
		return e
	case x < 75:
		e.keep = -1
	}
	e.n = rng.Uint64N(uint64(lookers))
	if rng.IntN(3) > 0 {
		e.name = often[rng.IntN(len(often))]
		return e
	}
	e.name = h.Paths[rng.IntN(len(h.Paths))]
	for rng.IntN(4) == 0 {
		e.name += " " + h.Paths[rng.IntN(len(h.Paths))]
	}
	e.opt = lookOptions[rng.IntN(len(lookOptions))]
	return e
}

// MarshalJSON writes what readEvents reads.
func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{string(rune(e.kind)), e.name, e.n, e.keep, e.opt})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (e *event) UnmarshalJSON(text []byte) error {
	var kind string
	if err := json.Unmarshal(text, &[]any{&kind, &e.name, &e.n, &e.keep, &e.opt}); err != nil {
		return err
	}
	if len(kind) != 1 {
		return fmt.Errorf("%q is no kind of event", kind)
	}
	e.kind = eventKind(kind[0])
	return nil
}

// writeEvents writes one event a line.
func writeEvents(events []event) string {
	var b strings.Builder
	for _, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			return err.Error()
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

func readEvents(file string) ([]event, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var events []event
	for line := range strings.Lines(string(text)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
