package handoff

import (
	"sync/atomic"
	"time"
)

// spin bounds how long a loop goes round without sleeping. A side that spins on the CPU that the other side
// needs keeps the answer from coming: such a side sleeps at once, and whoever wakes it up does so on
// another CPU if one is free.
type spin struct {
	budget      time.Duration
	mine, peers *atomic.Uint32 // each side's CPU when it last looked, plus 1
	rounds      int
	start       time.Time
}

// restart begins the time anew, until the side whose CPU peers is has something to say.
func (s *spin) restart(peers *atomic.Uint32) { s.rounds, s.peers = 0, peers }

// clock is after how many rounds a loop looks at the clock again.
const clock = 64

// goOn reports whether to go round once more. It looks at the clock once in a while, and at where it runs
// less often and not at once: an answer that comes quickly must not wait for that.
func (s *spin) goOn() bool {
	const where = 4 * clock
	if s.budget <= 0 {
		return false
	}
	pauseCPU(1)
	switch s.rounds++; {
	case s.rounds == clock:
		s.start = time.Now()
	case s.rounds%clock == 0:
		return time.Since(s.start) < s.budget && (s.rounds%where != 0 || !s.together())
	}
	return true
}

// together reports whether the other side was last seen on this CPU, and notes which one this is.
func (s *spin) together() bool {
	cpu, ok := currentCPU()
	if !ok {
		return false
	}
	if s.mine.Load() != cpu+1 {
		s.mine.Store(cpu + 1)
	}
	return s.peers.Load() == cpu+1
}
