package py

// Thread is an OS thread of the caller's that enters Python again and again. What Python has to know of
// it is made once. All calls come from the goroutine that is locked to that thread.
type Thread struct {
	interp *Interp
	state  threadState
	checks checkMemory
}

// Thread makes the calling goroutine's OS thread, to which it stays locked, one that can enter Python.
func (i *Interp) Thread() *Thread { return &Thread{interp: i} }

// Do runs f with the GIL held, on this thread, as [Interp.Do] does on another: without a hop, but it waits
// for the GIL for as long as that takes. After Shut the error wraps [core.ErrUnavailable]. Any other error
// is f's own.
func (t *Thread) Do(f func(g *GIL) error) error { return t.interp.on(&t.state, nil, f) }

// Here makes the thread that Python called us on, with the GIL, one that can be interrupted.
func (i *Interp) Here() *Thread {
	t := &Thread{interp: i}
	t.state.know()
	return t
}

// Within is [Interp.Within], on the thread of Here, for an f that calls the program's functions: a KeyboardInterrupt or a SystemExit
// that ends one of them is Python's exception again when f has returned, which it reports.
func (t *Thread) Within(f func(g *GIL)) (raised bool) {
	defer capiRestoreCollection() // which Unlocked holds off
	var ending exception
	func() {
		g := &GIL{interp: t.interp, thread: &t.state, ending: &ending}
		defer g.release(0, 0)
		f(g)
	}()
	return ending.throw()
}

// Interrupt makes the thread raise an exception, of a class, when it next runs Python code. Calm takes back what was
// not raised yet.
func (t *Thread) Interrupt(_ *GIL, class Object) { t.state.interrupt(class) }

// Calm undoes an Interrupt that has come too late.
func (t *Thread) Calm(_ *GIL) { t.state.calm() }
