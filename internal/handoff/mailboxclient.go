package handoff

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// ErrClosed says that the other side serves no more, or that Close was called.
var ErrClosed = errors.New("the mailbox is closed")

// ErrSlow says that the other side has not answered within the client's limit.
var ErrSlow = errors.New("no answer in time")

// look is how often a sleeping caller looks whether its context or the mailbox has ended.
const look = 2 * time.Millisecond

// lastLook is how often one looks in the end whose context does not end: Close wakes it.
const lastLook = 64 * time.Millisecond

// MailboxClient is the side that asks. All methods are safe for concurrent use.
type MailboxClient struct {
	bell, asleep, cpu, closed *atomic.Uint32

	slots       []Slot
	spin, limit time.Duration
	abandoned   func(answer []byte)

	free    atomic.Uint64 // a bit for each slot that nobody has
	waiting atomic.Int32  // callers that wait for a slot
	freed   chan struct{} // wakes them

	mu    sync.Mutex
	dead  atomic.Bool    // set with mu held
	stale sync.WaitGroup // of the goroutines that wait for answers in the place of callers that gave up; grows with mu held
}

// Slot is one request's part of the mailbox. The caller that got it from [MailboxClient.Acquire] has it alone,
// until Release.
type Slot struct {
	Index int // from 0
	// Spin is how long the next Call looks for its answer at least, unless the client's spin is 0.
	Spin time.Duration
	// Early, if it is not nil, may be called in the next Call, once, with the answer that the other side shows before it holds. That is
	// valid during the call.
	Early func(answer []byte)
	// Held says that the answer of the last Call is the one that Early was called with.
	Held bool

	client *MailboxClient
	shared slot
	number uint32 // of the last request
	answer []byte // private memory
}

// NewMailboxClient uses the memory of a mailbox that another process serves. It must stay mapped until Close and
// all calls have returned. Callers look for their answer for as long as spin before they sleep; they wait no
// longer than limit for it, and before that no longer than limit for a slot. abandoned is called, on a
// goroutine of its own, with the answer to a request whose caller had given up.
func NewMailboxClient(mem []byte, spin, limit time.Duration, abandoned func(answer []byte)) (*MailboxClient, error) {
	slots, err := slotsOf(mem)
	if err != nil {
		return nil, err
	}
	c := &MailboxClient{
		bell: Word(mem, offBell), asleep: Word(mem, offAsleep), cpu: Word(mem, offCPU), closed: Word(mem, offClosed),
		slots: make([]Slot, slots), freed: make(chan struct{}, slots), spin: spin, limit: limit, abandoned: abandoned,
	}
	for i := range slots {
		c.slots[i] = Slot{Index: i, client: c, shared: slotAt(mem, i), answer: make([]byte, 0, 4<<10)}
	}
	c.free.Store(1<<slots - 1)
	return c, nil
}

// Close ends the calls that are under way, at once as a rule and within [lastLook] at most, with [ErrClosed]. It is idempotent.
func (c *MailboxClient) Close() {
	c.mu.Lock()
	c.dead.Store(true)
	c.mu.Unlock()
	for i := range c.slots {
		shm.Wake(c.slots[i].shared.answered, 1)
	}
	c.stale.Wait()
}

// ended reports whether no more is served.
func (c *MailboxClient) ended() bool { return c.dead.Load() || c.closed.Load() != 0 }

// Acquire takes a slot for one request. If all are in use it waits for one. The error is [ErrClosed],
// [ErrSlow] or that of ctx.
func (c *MailboxClient) Acquire(ctx context.Context) (*Slot, error) {
	if c.ended() {
		return nil, ErrClosed
	}
	if l := c.take(); l != nil {
		return l, nil
	}
	c.waiting.Add(1) // Release sees it
	defer c.waiting.Add(-1)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		if l := c.take(); l != nil {
			return l, nil
		}
		select {
		case <-c.freed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case c.ended():
			return nil, ErrClosed
		case time.Since(begin) > c.limit:
			return nil, ErrSlow
		}
	}
}

// take takes a slot that nobody has, or gives nil.
func (c *MailboxClient) take() *Slot {
	for free := c.free.Load(); free != 0; free = c.free.Load() {
		if c.free.CompareAndSwap(free, free&(free-1)) {
			return &c.slots[bits.TrailingZeros64(free)]
		}
	}
	return nil
}

// Release gives the slot back. The answer of its last Call is not valid any more.
func (l *Slot) Release() {
	l.Spin, l.Early = 0, nil
	c := l.client
	c.free.Or(1 << l.Index)
	if c.waiting.Load() == 0 {
		return
	}
	select {
	case c.freed <- struct{}{}:
	default: // there are as many signals as slots
	}
}

// Call sends a request and waits for the answer, which is private memory, as long as the client's limit. It makes no garbage.
//
// The error is [ErrClosed], [ErrSlow] or that of ctx. After any the request may have been carried out, or may be later, and
// the slot is not the caller's any more.
func (l *Slot) Call(ctx context.Context, request []byte) (answer []byte, err error) {
	return l.call(ctx, request, l.client.limit)
}

// call is Call with a limit of its own, or none: 0.
func (l *Slot) call(ctx context.Context, request []byte, limit time.Duration) (answer []byte, err error) {
	l.Send(request)
	if answer, err = l.await(ctx, limit); err != nil {
		l.Abandon() //nolint:contextcheck // it outlives the call
	}
	return answer, err
}

// Send sends a request, whose answer [Slot.Await] waits for.
func (l *Slot) Send(request []byte) {
	c := l.client
	l.number++
	l.Held = false
	put(l.shared.request, request)
	l.shared.requested.Swap(l.number) // as [shm.Sleep] says
	if c.asleep.Load() != 0 {
		c.bell.Add(1)
		shm.Wake(c.bell, 1)
	}
}

// Await is the second half of Call. After an error the slot is still the caller's, who waits once more or calls [Slot.Abandon].
func (l *Slot) Await(ctx context.Context) (answer []byte, err error) {
	return l.await(ctx, l.client.limit)
}

// await is Await with a limit of its own, or none: 0.
func (l *Slot) await(ctx context.Context, limit time.Duration) (answer []byte, err error) {
	if err := l.wait(ctx, limit); err != nil {
		return nil, err
	}
	if l.Held = l.Held && l.shared.early.Load() == l.number; !l.Held {
		l.answer = take(l.shared.answer, l.answer)
	}
	return l.answer, nil
}

// lookEarly calls Early if the answer is shown.
func (l *Slot) lookEarly() {
	if l.Early == nil || l.shared.early.Load() != l.number {
		return
	}
	l.answer = take(l.shared.answer, l.answer)
	if l.shared.early.Load() != l.number { // it has been given up, and may be half of another
		return
	}
	show := l.Early
	l.Early, l.Held = nil, true
	show(l.answer)
}

// wait returns when the answer is there.
func (l *Slot) wait(ctx context.Context, limit time.Duration) error {
	answered := l.shared.answered
	pause := spin{budget: l.client.spin, mine: l.shared.cpu, peers: l.client.cpu}
	if pause.budget > 0 {
		pause.budget = max(pause.budget, l.Spin)
	}
	for answered.Load() != l.number {
		l.lookEarly()
		if !pause.goOn() || pause.rounds%clock == 0 && ctx.Err() != nil {
			return l.sleep(ctx, limit)
		}
		if l.Spin > 0 && pause.rounds%clock == 0 { // others may have but this thread
			runtime.Gosched()
		}
	}
	return nil
}

// sleep is wait without looking all the time, for as long as limit unless that is 0.
func (l *Slot) sleep(ctx context.Context, limit time.Duration) error {
	c, answered := l.client, l.shared.answered
	defer l.shared.sleeping.Store(0)
	pause := look
	for begin := time.Now(); ; {
		l.shared.sleeping.Swap(1)
		l.lookEarly()
		got := answered.Load()
		switch {
		case got == l.number:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case c.ended():
			return ErrClosed
		case limit > 0 && time.Since(begin) > limit:
			return ErrSlow
		}
		shm.Sleep(answered, got, pause)
		if ctx.Done() == nil {
			pause = min(2*pause, lastLook)
		}
	}
}

// Abandon has an answer that nobody wants waited for in the place of the caller, whose slot is given back after it.
func (l *Slot) Abandon() {
	c := l.client
	l.Early = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended() {
		return
	}
	c.stale.Go(func() {
		if l.sleep(context.Background(), 0) != nil {
			return // nobody needs the slot any more
		}
		if l.answer = take(l.shared.answer, l.answer); c.abandoned != nil {
			c.abandoned(l.answer)
		}
		l.Release()
	})
}
