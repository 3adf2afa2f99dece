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

// AfterNext calls f once, when the next function of [Interp.Do] or [Thread.Do] has given the GIL back.
func (i *Interp) AfterNext(f func()) { i.next.Store(&f) }

func (i *Interp) nextDone() {
	if i.next.Load() == nil { // as nearly always
		return
	}
	if f := i.next.Swap(nil); f != nil {
		(*f)()
	}
}

// End is called on the thread before it ends, and has Python forget it. After Shut it does nothing.
func (t *Thread) End() { t.interp.forget(&t.state) }

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

// Poll lets Python raise what is due on this thread: what handlers of signals raise, and what [Thread.Interrupt] has asked for. It reports
// whether something was raised: then f of [Thread.Within] returns, after which it is Python's exception.
func (g *GIL) Poll() (raised bool, err error) {
	nothing, err := g.nothing()
	if err != nil {
		return false, err
	}
	args, err := g.NewTuple()
	if err != nil {
		return false, err
	}
	if o := capiCall(nothing, args, 0); o != 0 {
		capiDecref(o)
		return g.ending.t != 0, nil
	}
	t, v, traceback := capiFetch()
	g.ending.take(t, v, traceback)
	capiDecrefAll([]Object{t, v, traceback})
	return true, nil
}

// Ends reports whether an exception was met that is Python's again when f of [Thread.Within] has returned.
func (g *GIL) Ends() bool { return g.ending != nil && g.ending.t != 0 }

// nothing is a function of Python's that does nothing: whoever calls it gives Python's interpreter a turn.
func (g *GIL) nothing() (Object, error) {
	i := g.interp
	i.namesMu.Lock()
	f := i.nothing
	i.namesMu.Unlock()
	if f != 0 {
		return f, nil
	}
	builtins, err := g.Import("builtins")
	if err != nil {
		return 0, err
	}
	code, err := g.NewStr("lambda: None")
	if err != nil {
		return 0, err
	}
	globals, err := g.NewDict()
	if err != nil {
		return 0, err
	}
	if f, err = g.CallMethod(builtins, "eval", []Object{code, globals}, nil); err != nil {
		return 0, err
	}
	i.namesMu.Lock()
	defer i.namesMu.Unlock()
	if i.nothing == 0 {
		i.nothing = g.Keep(f)
	}
	return i.nothing, nil
}

// RaiseAs sets an exception of a class, for a function that Python called and that now returns NULL or -1.
func (g *GIL) RaiseAs(class Object, text string) { capiRaise(class, text) }

// ID is the number by which Python knows the thread that has the GIL.
func (g *GIL) ID() uint64 {
	g.thread.know()
	return uint64(g.thread.id)
}

// Interrupt makes the thread raise an exception, of a class, when it next runs Python code. Calm takes back what was
// not raised yet. It does nothing, and gives false, while another thread that this one has just made could be taken for it: that does not last.
func (t *Thread) Interrupt(_ *GIL, class Object) bool { return t.state.interrupt(class) }

// Calm undoes an Interrupt that has come too late.
func (t *Thread) Calm(_ *GIL) { t.state.calm() }
