// Package bench measures ways to hand arrays over beside one another, in turns: a program's arrays as
// hosts see them, and the usual ways of Python. "make bench" and "ndbridge bench" are made of it.
package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The sizes of what is measured.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Key says what is measured.
type Key struct {
	Way       string `json:"way"`
	Framework string `json:"framework,omitempty"`
	Bytes     int    `json:"bytes,omitempty"`
	Callers   int    `json:"callers,omitempty"` // at the same time; 0 means one
}

func (k Key) String() string {
	text := k.Way
	if k.Framework != "" {
		text += ", " + k.Framework
	}
	if k.Bytes > 0 {
		text += ", " + SizeText(k.Bytes)
	}
	if k.Callers > 1 {
		text += fmt.Sprintf(", %d callers", k.Callers)
	}
	return text
}

// Row is what was measured of it.
type Row struct {
	Key
	Quantiles
	Allocations *float64 `json:"host_allocations,omitempty"` // a call

	rounds []time.Duration // the median of each; 0: it took no part
}

// Over says how many times as long as base it took, by the median: in each round of which both were a part,
// and of these ratios the median. What changes the machine for longer than a round, such as where its CPUs
// are, meets both. It is 0 if there was no such round.
func (r Row) Over(base Row) float64 {
	var ratios []float64
	for i, took := range r.rounds {
		if i < len(base.rounds) && took > 0 && base.rounds[i] > 0 {
			ratios = append(ratios, float64(took)/float64(base.rounds[i]))
		}
	}
	return Median(ratios)
}

// Rows can be looked up.
type Rows []Row

// Find gives the row of a key.
func (r Rows) Find(k Key) (Row, bool) {
	i := slices.IndexFunc(r, func(row Row) bool { return row.Key == k })
	if i < 0 {
		return Row{Key: k}, false
	}
	return r[i], true
}

// Turn measures some calls, one turn, and gives how long each took. The slice is valid until the next turn.
type Turn func(ctx context.Context) ([]time.Duration, error)

// Subject is measured in turns with others.
type Subject struct {
	Key
	Turn  Turn
	Every int    // it takes part in one of so many rounds; 0 means all
	Count Caller // whose allocations are counted, if it has a Do

	took   []time.Duration
	rounds []time.Duration // medians
}

// Interleave measures subjects in turns, so that what else the machine does meets all of them.
func Interleave(ctx context.Context, rounds int, subjects []*Subject) (Rows, error) {
	for round := range rounds {
		for _, s := range subjects {
			if round%max(s.Every, 1) != 0 {
				s.rounds = append(s.rounds, 0)
				continue
			}
			took, err := s.Turn(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Key, err)
			}
			s.took = append(s.took, took...)
			s.rounds = append(s.rounds, QuantilesOf(took).P50)
		}
	}
	rows := make(Rows, 0, len(subjects))
	for _, s := range subjects {
		row := Row{Key: s.Key, Quantiles: QuantilesOf(s.took), rounds: s.rounds}
		if s.Count.Do != nil {
			n, err := s.Count.allocations(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Key, err)
			}
			row.Allocations = &n
		}
		rows = append(rows, row)
	}
	return rows, nil
}
