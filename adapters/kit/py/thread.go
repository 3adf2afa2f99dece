package py

// Thread is an OS thread of the caller's that enters Python again and again. What Python has to know of
// it is made once. All calls come from the goroutine that is locked to that thread.
type Thread struct {
	interp *Interp
	state  threadState
}

// Thread makes the calling goroutine's OS thread, to which it stays locked, one that can enter Python.
func (i *Interp) Thread() *Thread { return &Thread{interp: i} }

// Same reports whether a global variable of the program, whose name is interned, leads to what was seen. It
// costs one call. What [GIL.Same] says holds.
func (t *Thread) Same(name Object, seen *Glance) bool {
	if !t.interp.enter() {
		return false
	}
	defer t.interp.exit()
	return capiSameGlobal(&t.state, t.interp.ending, name, seen)
}

// Do runs f with the GIL held, on this thread, as [Interp.Do] does on another: without a hop, but it waits
// for the GIL for as long as that takes. After Shut the error wraps [core.ErrUnavailable]. Any other error
// is f's own.
func (t *Thread) Do(f func(g *GIL) error) error { return t.interp.on(&t.state, nil, f) }
