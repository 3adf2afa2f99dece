package arrays

import (
	"context"
	"time"
)

// How often the words of what is lent are looked at, since nobody tells when an object lets go of it: soon after a call,
// and ever less often if it is kept.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// loan is memory of another program's that objects of this one use.
type loan struct {
	word    uint32
	release func()
}

// loans are those whose calls are over. The space's lock guards them.
type loans struct {
	kept  []loan
	wait  time.Duration
	timer *time.Timer // nil: nobody looks
}

// end gives what ends all loans.
func (l *loans) end() (releases []func()) {
	if l.timer != nil {
		l.timer.Stop()
	}
	for _, k := range l.kept {
		releases = append(releases, k.release)
	}
	l.kept = nil
	return releases
}

// Lend takes a word that counts the objects in the program that use an array of somebody else's, as an argument of one call.
// The caller calls over when the call is over. Then release is called, or as soon as no object uses the array any more.
func (s *Space) Lend(ctx context.Context, release func()) (word uint32, over func(), err error) {
	if word, err = s.take(ctx); err != nil {
		return 0, nil, err
	}
	return word, func() { s.returned(loan{word, release}) }, nil
}

// returned ends a loan whose call is over, or keeps it for as long as the program does.
func (s *Space) returned(l loan) {
	s.mu.Lock()
	switch {
	case s.closed:
	case s.held(l.word).Load() == 0:
		s.free = append(s.free, l.word)
	default:
		s.loans.kept = append(s.loans.kept, l)
		s.look(firstLook)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	l.release()
}

// look has the words looked at after a while. The caller has the lock.
func (s *Space) look(wait time.Duration) {
	s.loans.wait = wait
	if s.loans.timer == nil {
		s.loans.timer = time.AfterFunc(wait, s.settle)
	} else {
		s.loans.timer.Reset(wait)
	}
}

// settle ends the loans that no object uses any more.
func (s *Space) settle() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	var over []loan
	still := s.loans.kept[:0]
	for _, l := range s.loans.kept {
		if s.held(l.word).Load() == 0 {
			s.free = append(s.free, l.word)
			over = append(over, l)
		} else {
			still = append(still, l)
		}
	}
	clear(s.loans.kept[len(still):])
	s.loans.kept = still
	if len(still) > 0 {
		s.look(min(2*s.loans.wait, lastLook))
	}
	s.mu.Unlock()
	for _, l := range over {
		l.release()
	}
}
