package watch

import (
	"context"
	"sync"
	"time"
)

// Pace keeps what reading takes below a share of one core's time. Its methods are safe for concurrent use.
type Pace struct {
	credit time.Duration // for how long what was not spent may be spent later
	whole  *Pace         // of which this is a part; nil: of none

	mu      sync.Mutex
	parts   int
	limit   float64
	free    time.Time // when the time that was spent is paid for
	begun   time.Time // of what is counted for Spent
	spent   time.Duration
	reads   int
	delayed bool
	waiting int // are delayed now
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

// Part gives the pace of one of several readers who share p, until it is left. What it spends is spent of p, too. It may go on when either all
// that was spent of p is paid for, or what it has spent itself is by an equal part of p's share: who reads little does not wait until
// somebody who reads much has paid. All of them together keep to p's share all the same.
func (p *Pace) Part() *Pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts++
	return &Pace{credit: p.credit, whole: p, begun: time.Now()}
}

// Leave ends a part.
func (p *Pace) Leave() {
	p.whole.mu.Lock()
	defer p.whole.mu.Unlock()
	p.whole.parts--
}

// SetLimit changes the share. That of a part follows from it.
func (p *Pace) SetLimit(limit float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Limit is the share of one core's time that reading may take.
func (p *Pace) Limit() float64 {
	if p.whole != nil {
		p.whole.mu.Lock()
		defer p.whole.mu.Unlock()
		return p.whole.limit / float64(max(p.whole.parts, 1))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// Spend counts one read, and what it has taken.
func (p *Pace) Spend(took time.Duration) { p.charge(1, took) }

// Charge counts what was done with what was read.
func (p *Pace) Charge(took time.Duration) { p.charge(0, took) }

func (p *Pace) charge(reads int, took time.Duration) {
	now, pays := time.Now(), time.Duration(float64(took)/p.Limit())
	most := pays
	if p.whole != nil {
		p.whole.charge(reads, took)
		most = max(most, p.whole.Owed()) // what the others have left is no debt once they want it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads += reads
	p.spent += took
	if least := now.Add(-took - p.credit); p.free.Before(least) {
		p.free = least
	}
	p.free = p.free.Add(pays)
	if most := now.Add(most); p.whole != nil && p.free.After(most) {
		p.free = most
	}
}

// Owed is how long it takes until the time that was spent is paid for; 0: it is.
func (p *Pace) Owed() time.Duration {
	p.mu.Lock()
	owed := max(time.Until(p.free), 0)
	p.mu.Unlock()
	if p.whole == nil {
		return owed
	}
	return min(owed, p.whole.Owed())
}

// Wait waits for a time, and longer if more was spent than is allowed.
func (p *Pace) Wait(ctx context.Context, least time.Duration) error {
	owed := p.Owed()
	if owed > least {
		p.delay(1)
		defer p.delay(-1)
	}
	timer := time.NewTimer(max(owed, least))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if owed = p.Owed(); owed == 0 { // else others have spent meanwhile
			return nil
		}
		timer.Reset(owed)
	}
}

// delay remembers that some have to wait, or do no longer.
func (p *Pace) delay(n int) {
	if p.whole != nil {
		p.whole.delay(n)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delayed = true
	p.waiting += n
}

// Spent says what was spent since it was asked last.
func (p *Pace) Spent() Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	passed := max(now.Sub(p.begun).Seconds(), 1e-3)
	s := Spent{Share: p.spent.Seconds() / passed, Time: p.spent, Reads: float64(p.reads) / passed, Delayed: p.delayed}
	p.begun, p.spent, p.reads, p.delayed = now, 0, 0, p.waiting > 0
	return s
}
