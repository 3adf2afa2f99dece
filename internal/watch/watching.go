package watch

import (
	"context"
	"slices"

	"github.com/ndbridge/ndbridge/stats"
)

// SetAlarms has other alarms raised from now on. Those that stay are not raised again.
func (s *Sampler) SetAlarms(alarms []Alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Alarms = slices.Clone(alarms)
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

// watching gives the alarms and the count of steps that hold now.
func (s *Sampler) watching() (alarms []Alarm, step func(ctx context.Context) *stats.Number) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Alarms, s.opts.Step
}
