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

// credit is how long what was not spent may be spent later: the first look at an array takes longer than the next ones.
const credit = time.Second

// askedShare is how many times the budget is allowed for what people ask for: they wait for it, and go on to ask only for as long as they look.
const askedShare = 10

// spell is processor time: what all of this process has taken, and what one thread has.
type spell struct{ all, own time.Duration }

// clocks is what was taken until now. A thread's time is that of the goroutine which is locked to it.
func clocks() spell {
	return spell{watch.Clock(unix.CLOCK_PROCESS_CPUTIME_ID), watch.Clock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

func (s spell) minus(t spell) spell { return spell{s.all - t.all, s.own - t.own} }

func (s spell) plus(t spell) spell { return spell{s.all + t.all, s.own + t.own} }

// spend counts what reading has taken.
func (p *pace) spend(took time.Duration) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += took
	p.reads++
	if least := now.Add(-took - credit); p.free.Before(least) {
		p.free = least
	}
	p.free = p.free.Add(time.Duration(float64(took) / p.limit))
}

// paid reports whether the time that was spent is paid for.
func (p *pace) paid() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.free)
}

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
