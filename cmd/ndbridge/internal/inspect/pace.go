package inspect

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// credit is for how long what pages have not spent may be spent later.
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
