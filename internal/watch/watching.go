package watch

import (
	"context"
	"slices"

	"github.com/ndbridge/ndbridge/stats"
)

// SetAlarms has other alarms raised from now on. Those that stay are not raised again, but those that were not there for a while are.
func (s *Sampler) SetAlarms(alarms []Alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Alarms = slices.Clone(alarms)
}

// Also says which other names an array has: alarms for these are of it, too.
func (s *Sampler) Also(name string, also []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, there := slices.BinarySearchFunc(s.arrays, name, byName); there {
		s.arrays[i].also = also
	}
}

// Lasting gives the names that are watched, and whether they last: they have led to an array at each look, at two at least, or for a while since they did
// not. Variables of a function that comes and goes do not.
func (s *Sampler) Lasting() map[string]bool {
	const few, many = 2, 4 * givenUp
	s.mu.Lock()
	defer s.mu.Unlock()
	lasting := make(map[string]bool)
	for _, w := range s.arrays {
		lasting[w.Name] = w.there >= many || w.there >= few && !w.came
	}
	return lasting
}

// SetStep names another count of the program's steps, or none: see [Options].
func (s *Sampler) SetStep(step func(ctx context.Context) *stats.Number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Step = step
}

// Budget is [Options].Budget as it is now.
func (s *Sampler) Budget() float64 { return s.pace.Limit() }

// SetBudget changes [Options].Budget.
func (s *Sampler) SetBudget(share float64) {
	s.pace.SetLimit(share)
}

// alarmsOf gives the alarms that hold now, and the names of an array.
func (s *Sampler) alarmsOf(w *watched) (alarms []Alarm, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Alarms, append([]string{w.Name}, w.also...)
}

// counts gives what counts the program's steps now.
func (s *Sampler) counts() func(ctx context.Context) *stats.Number {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Step
}
