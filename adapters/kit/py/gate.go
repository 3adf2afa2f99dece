package py

import "sync"

// gate counts the threads that are inside the interpreter, and knows those among them that are at work: the others
// wait for the GIL, or are about to give it back. Once it is closed, neither are there more.
type gate struct {
	calm  chan struct{} // closed when the gate is closed and all threads inside are at work
	empty chan struct{} // closed when the gate is closed and no thread is inside

	mu      sync.Mutex
	closed  bool
	isCalm  bool
	isEmpty bool
	inside  int
	atWork  map[*threadState]struct{}
}

func newGate() *gate {
	return &gate{calm: make(chan struct{}), empty: make(chan struct{}), atWork: make(map[*threadState]struct{})}
}

// enter counts this thread as inside, unless the gate is closed. leave undoes it.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.tell()
}

// begin notes that a thread that is inside is at work, unless the gate is closed. end undoes it.
func (g *gate) begin(t *threadState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.atWork[t] = struct{}{}
	return true
}

func (g *gate) end(t *threadState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.atWork, t)
	g.tell()
}

// interrupt interrupts the threads that are at work. The caller holds the GIL.
func (g *gate) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.atWork {
		t.interrupt(0)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.tell()
}

// tell tells those that wait for the threads inside.
func (g *gate) tell() {
	if g.closed && !g.isCalm && g.inside == len(g.atWork) {
		g.isCalm = true
		close(g.calm)
	}
	if g.closed && !g.isEmpty && g.inside == 0 {
		g.isEmpty = true
		close(g.empty)
	}
}
