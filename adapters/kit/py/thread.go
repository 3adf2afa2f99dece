package py

import "time"

const (
	// patience is how long a thread keeps the GIL that it had to wait for: its caller may be about to ask for
	// the next thing, but is most often asleep, as it has waited, too.
	patience = 200 * time.Microsecond
	// most bounds how long it keeps the GIL if one thing comes after the other: a fifth of what it has waited.
	most = time.Millisecond
)

// Thread is an OS thread of the caller's that enters Python again and again. What Python has to know of
// it is made once. All calls come from the goroutine that is locked to that thread.
//
// While Python computes, whoever wants the GIL waits for a whole switch interval (sys.setswitchinterval:
// 5 ms). A thread that has waited keeps the GIL for a moment, so that a few calls in a row wait once. While
// it keeps the GIL, its caller must wait for no other thread that may want it, and must call Rest before it
// sleeps.
type Thread struct {
	interp *Interp
	state  threadState

	kept  bool // the GIL, after a call
	since time.Time
	used  time.Time // when the last call ended
}

// Thread makes the calling goroutine's OS thread, to which it stays locked, one that can enter Python.
func (i *Interp) Thread() *Thread { return &Thread{interp: i} }

// Same reports whether a global variable of the program, whose name is interned, leads to what was seen. It
// costs one call. What [GIL.Same] says holds.
func (t *Thread) Same(name Object, seen *Glance) bool {
	if t.state.p == 0 || !t.kept && !t.interp.enter() {
		return false
	}
	same, holds := capiSameGlobal(&t.state, t.kept, t.interp.ending, name, seen)
	if holds {
		t.keep()
	} else {
		t.interp.exit()
	}
	return same
}

// Do runs f with the GIL held, on this thread, as [Interp.Do] does on another: without a hop, but it waits
// for the GIL for as long as that takes. After Shut the error wraps [core.ErrUnavailable]. Any other error
// is f's own.
func (t *Thread) Do(f func(g *GIL) error) error {
	waited := false
	if !t.kept {
		if !t.interp.enter() {
			return errGone()
		}
		waited = t.state.enter()
	}
	err := t.interp.held(&t.state, nil, f)
	if waited || t.kept {
		t.keep()
	} else {
		t.state.leave()
		t.interp.exit()
	}
	return err
}

// keep keeps the GIL after a call, unless it was kept for long.
func (t *Thread) keep() {
	t.used = time.Now()
	if !t.kept {
		t.kept, t.since = true, t.used
	}
	if t.used.Sub(t.since) >= most || t.interp.isShut() {
		t.letGo()
	}
}

// Rest gives back the GIL that was kept when it is time, and reports whether it is still kept: then it is to
// be called again soon.
func (t *Thread) Rest() (kept bool) {
	if !t.kept {
		return false
	}
	if now := time.Now(); now.Sub(t.used) >= patience || now.Sub(t.since) >= most || t.interp.isShut() {
		t.letGo()
	}
	return t.kept
}

func (t *Thread) letGo() {
	t.kept = false
	t.state.leave()
	t.interp.exit()
}
