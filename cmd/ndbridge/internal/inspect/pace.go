package inspect

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// pace keeps what reading takes below a share of one core's time.
type pace struct {
	mu      sync.Mutex
	limit   float64
	free    time.Time // when the time that was spent is paid for
	begun   time.Time // of what is counted for cost
	spent   time.Duration
	reads   int
	delayed bool
}

func newPace(limit float64) *pace { return &pace{limit: limit, begun: time.Now()} }

// set changes the share.
func (p *pace) set(limit float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// share is what reading may take of one core's time.
func (p *pace) share() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// taken is the processor time that f takes, on all cores, and what f says that others have taken for it. Waiting
// costs nothing.
func taken(f func() time.Duration) time.Duration {
	begun := processorTime()
	took := f()
	return took + processorTime() - begun
}

// spend counts what reading has taken.
func (p *pace) spend(took time.Duration) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += took
	p.reads++
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(took) * (1/p.limit - 1)))
}

// paid reports whether the time that was spent is paid for.
func (p *pace) paid() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.free)
}

// processorTime is what this process has taken until now. It does nothing else of note than to read for pages.
func processorTime() time.Duration { return watch.Clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// wait waits for a time, and longer if more was spent than is allowed.
func (p *pace) wait(ctx context.Context, least time.Duration) error {
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

// cost says what was spent since it was asked last.
func (p *pace) cost() budget {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	passed := max(now.Sub(p.begun).Seconds(), 1e-3)
	b := budget{Share: p.spent.Seconds() / passed, Limit: p.limit, Reads: float64(p.reads) / passed, Waiting: p.delayed}
	p.begun, p.spent, p.reads, p.delayed = now, 0, 0, false
	return b
}
