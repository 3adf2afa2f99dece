package watch

import (
	"context"
	"sync"
	"time"
)

// Pace keeps what reading takes below a share of one core's time. Its methods are safe for concurrent use.
type Pace struct {
	credit time.Duration // for how long what was not spent may be spent later

	mu      sync.Mutex
	limit   float64
	free    time.Time // when the time that was spent is paid for
	begun   time.Time // of what is counted for Spent
	spent   time.Duration
	reads   int
	delayed bool
}

// Spent is what reading has taken lately.
type Spent struct {
	Share   float64       // of one core's time
	Time    time.Duration // of a core
	Reads   float64       // a second
	Delayed bool          // some had to wait
}

// NewPace gives a pace of a share of one core's time. What was not spent in the time of the credit may be spent at once, since the first
// look at an array maps its pages, and takes longer than the next ones.
func NewPace(limit float64, credit time.Duration) *Pace {
	return &Pace{limit: limit, credit: credit, begun: time.Now()}
}

// SetLimit changes the share.
func (p *Pace) SetLimit(limit float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Limit is the share of one core's time that reading may take.
func (p *Pace) Limit() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// Spend counts one read, and what it has taken.
func (p *Pace) Spend(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	p.charge(took)
}

// Charge counts what was done with what was read.
func (p *Pace) Charge(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charge(took)
}

func (p *Pace) charge(took time.Duration) {
	now := time.Now()
	p.spent += took
	if least := now.Add(-took - p.credit); p.free.Before(least) {
		p.free = least
	}
	p.free = p.free.Add(time.Duration(float64(took) / p.limit))
}

// Owed is how long it takes until the time that was spent is paid for; 0: it is.
func (p *Pace) Owed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.free), 0)
}

// Wait waits for a time, and longer if more was spent than is allowed.
func (p *Pace) Wait(ctx context.Context, least time.Duration) error {
	p.mu.Lock()
	owed := time.Until(p.free)
	p.delayed = p.delayed || owed > least
	p.mu.Unlock()
	timer := time.NewTimer(max(owed, least))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Spent says what was spent since it was asked last.
func (p *Pace) Spent() Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	passed := max(now.Sub(p.begun).Seconds(), 1e-3)
	s := Spent{Share: p.spent.Seconds() / passed, Time: p.spent, Reads: float64(p.reads) / passed, Delayed: p.delayed}
	p.begun, p.spent, p.reads, p.delayed = now, 0, 0, false
	return s
}
