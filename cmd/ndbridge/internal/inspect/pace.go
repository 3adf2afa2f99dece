package inspect

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// credit is for how long what pages have not spent may be spent later.
const credit = time.Second

const (
	// askedShare is how many times the budget is allowed for what people ask for, and as many times for the pictures that follow rough ones: they
	// wait for it, and go on to ask only for as long as they look.
	askedShare = 5
	// askedCredit is credit for that: people ask for several things, one soon after the other, and then look.
	askedCredit = 5 * time.Second
)

// spell is processor time: a reading's part of what all of this process has taken, and what one thread has.
type spell struct{ all, own time.Duration }

// clocks is what was taken until now. A thread's time is that of the goroutine which is locked to it.
func (w *reading) clocks() spell {
	return spell{w.hub.meter.of(w), watch.Clock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

// meter divides the processor time of this process equally among those who look meanwhile.
type meter struct {
	mu    sync.Mutex
	until time.Duration              // what is divided already
	parts map[*reading]time.Duration // since each has begun
}

// begin has a reading take part.
func (m *meter) begin(w *reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divide()
	if m.parts == nil {
		m.parts = map[*reading]time.Duration{}
	}
	m.parts[w] = 0
}

// of is a reading's part since it has begun.
func (m *meter) of(w *reading) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divide()
	return m.parts[w]
}

func (m *meter) end(w *reading) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divide()
	delete(m.parts, w)
}

func (m *meter) divide() {
	now := watch.Clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	for w := range m.parts {
		m.parts[w] += (now - m.until) / time.Duration(len(m.parts))
	}
	m.until = now
}

func (s spell) minus(t spell) spell { return spell{s.all - t.all, s.own - t.own} }

func (s spell) plus(t spell) spell { return spell{s.all + t.all, s.own + t.own} }
