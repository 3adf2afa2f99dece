package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// grace is how long a call whose context has ended waits to hear what became of the function.
const grace = 100 * time.Millisecond

// ErrClosed says that the program serves no more calls, or that Close was called.
var ErrClosed = handoff.ErrClosed

// Remote is what a client asks the program by gRPC, in passing.
type Remote interface {
	// Workers sees to it that the first n workers serve.
	Workers(ctx context.Context, n int) error
	// Cancel cancels a call.
	Cancel(ctx context.Context, worker int, number uint64) (State, error)
}

// Room is where a client keeps messages that are too long for a mailbox.
type Room interface {
	// Put gives memory of the host's, which the program knows, with those bytes. done gives it back.
	Put(ctx context.Context, message []byte) (a Argument, done func(), err error)
	// Take gives the bytes of a lease, which are private memory, and gives the lease back.
	Take(ctx context.Context, l contract.Lease) ([]byte, error)
	// Release gives leases back that nobody wants.
	Release(ids ...contract.LeaseID)
}

// Client calls functions of a program. All methods are safe for concurrent use.
type Client struct {
	codec   Codec
	remote  Remote
	room    Room
	spin    time.Duration
	memory  Memory
	mapping *shm.Mapping
	number  atomic.Uint64
	closing chan struct{} // closed by Close

	free chan struct{} // has room for one token for each call that may run

	mu      sync.Mutex
	closed  bool
	idle    []*caller // the last is the one that was used last
	workers []*caller
	using   sync.WaitGroup // of the memory; grows while closed is false
}

// caller is a worker as the host sees it. Whoever took it from idle has it alone.
type caller struct {
	index   int
	mailbox *handoff.MailboxClient
	request []byte
	makes   bool   // the answer's target is a function or a generator
	over    func() // the request's; nil: it has none
	done    func() // gives back what the request lies in; nil: it is in the mailbox
}

// NewClient maps the memory that a program has announced, whose descriptor stays the caller's. The error says that
// the program lied about it.
func NewClient(file *os.File, m Memory, codec Codec, remote Remote, room Room, spin time.Duration) (*Client, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	mapping, err := shm.MapSealed(file, m.Size)
	if err != nil {
		return nil, err
	}
	return &Client{
		codec: codec, remote: remote, room: room, spin: spin, memory: m, mapping: mapping,
		closing: make(chan struct{}), free: make(chan struct{}, m.Workers),
	}, nil
}

// Held is a word that counts objects in the program.
func (c *Client) Held(word uint32) *atomic.Uint32 { return held(c.mapping.Bytes(), word) }

// Close ends the calls that are under way with [ErrClosed]. It is idempotent. Nobody may use the words of Held any
// more.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	workers := c.workers
	c.mu.Unlock()
	close(c.closing)
	for _, w := range workers {
		w.mailbox.Close()
	}
	c.using.Wait()
	for _, w := range workers { // nobody has any of them now
		w.letGo()
	}
	return c.mapping.Close()
}

// Call gives r to a worker, waits for its answer, and reads that into a. Values of a are private memory. It gives r its
// number, and sees to it that r.Over is called: before it returns, unless the function still runs then. When ctx ends, the call is cancelled: the error wraps that of ctx and says what became of the function. The other
// errors are ErrClosed, what the program did wrong (core.ErrProtocol), and what the program said.
func (c *Client) Call(ctx context.Context, r *Request, a *Answer) error {
	w, err := c.acquire(ctx)
	if err != nil {
		if r.Over != nil {
			r.Over()
		}
		return err
	}
	defer c.using.Done()
	w.over = r.Over
	r.Number = c.number.Add(1)
	answer, back, err := c.exchange(ctx, w, r)
	if err != nil {
		return err
	}
	err = c.read(ctx, answer, a)
	back()
	return err
}

// acquire takes a worker, and makes one if all that there are are at work.
func (c *Client) acquire(ctx context.Context) (*caller, error) {
	select {
	case c.free <- struct{}{}:
	default:
		select {
		case c.free <- struct{}{}:
		case <-ctx.Done():
			return nil, never(ctx)
		case <-c.closing:
			return nil, ErrClosed
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.using.Add(1)
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return w, nil
	}
	w, err := c.grow(ctx)
	if err != nil {
		c.using.Done()
		<-c.free
		return nil, err
	}
	return w, nil
}

// grow makes one more worker. The caller has the lock: nobody needs two at the same moment.
func (c *Client) grow(ctx context.Context) (*caller, error) {
	w := &caller{index: len(c.workers)}
	if err := c.remote.Workers(ctx, w.index+1); err != nil {
		return nil, err
	}
	// A call that nobody waits for any more gives its worker back, late.
	abandoned := func(answer []byte) { //nolint:contextcheck // it outlives the call
		c.discard(w, answer)
		c.giveBack(w)
	}
	var err error
	w.mailbox, err = handoff.NewMailboxClient(mailbox(c.mapping.Bytes(), w.index), c.spin, math.MaxInt64, abandoned)
	if err != nil {
		return nil, &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	c.workers = append(c.workers, w)
	return w, nil
}

// discard gives back what an answer has that nobody waits for any more.
func (c *Client) discard(w *caller, answer []byte) {
	var a Answer
	if err := a.Parse(answer, c.codec); err != nil {
		c.room.Release(granted(answer, c.codec)...)
		return
	}
	if a.Kind == outside && len(a.Leases) == 1 {
		inner, err := c.room.Take(context.Background(), a.Leases[0])
		if err == nil {
			c.room.Release(granted(inner, c.codec)...)
		}
		return
	}
	c.release(&a)
	if w.makes && a.Kind == Done {
		target := a.Target
		go func() { // an error says that the program is gone, and the target with it
			_ = c.Call(context.Background(), &Request{Op: OpDrop, Target: target}, new(Answer))
		}()
	}
}

func (c *Client) release(a *Answer) {
	for i := range a.Leases {
		c.room.Release(a.Leases[i].ID)
	}
}

// letGo gives back what a request has, which nobody looks at any more.
func (w *caller) letGo() {
	for _, f := range []*func(){&w.over, &w.done} {
		if do := *f; do != nil {
			*f = nil
			do()
		}
	}
}

func (c *Client) giveBack(w *caller) {
	w.letGo()
	c.mu.Lock()
	c.idle = append(c.idle, w)
	c.mu.Unlock()
	<-c.free
}

// exchange sends a request. The answer is valid until back is called.
func (c *Client) exchange(ctx context.Context, w *caller, r *Request) (answer []byte, back func(), err error) {
	request, err := c.pack(ctx, w, r)
	if err != nil {
		c.giveBack(w)
		return nil, nil, err
	}
	slot, err := w.mailbox.Acquire(ctx)
	if err != nil {
		c.giveBack(w)
		return nil, nil, ended(err) // nobody else has the mailbox, so it does not wait
	}
	w.makes = r.Op == OpFunc || r.Flags&FlagStream != 0
	answer, err = c.wait(ctx, w, slot, r, request)
	if err != nil {
		return nil, nil, err // and the worker is given back when it has answered
	}
	return answer, func() {
		slot.Release()
		c.giveBack(w)
	}, nil
}

// pack writes a request, into memory of its own if it is long.
func (c *Client) pack(ctx context.Context, w *caller, r *Request) (request []byte, err error) {
	if request, err = r.Append(w.request[:0], c.codec); err != nil {
		return nil, err
	}
	if len(request) > handoff.MaxRequest {
		short := Request{Op: r.Op, Flags: flagOutside, Number: r.Number, Arrays: make([]Argument, 1)}
		if short.Arrays[0], w.done, err = c.room.Put(ctx, request); err != nil {
			return nil, err
		}
		if request, err = short.Append(w.request[:0], c.codec); err != nil {
			return nil, err
		}
	}
	w.request = request
	return request, nil
}

// wait waits for an answer, and cancels the call when ctx ends.
func (c *Client) wait(ctx context.Context, w *caller, slot *handoff.Slot, r *Request, request []byte) ([]byte, error) {
	if ctx.Done() == nil {
		answer, err := slot.Call(ctx, request)
		return answer, ended(err)
	}
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var state State
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		defer time.AfterFunc(grace, giveUp)
		short, cancel := context.WithTimeout(patient, grace)
		defer cancel()
		state, _ = c.remote.Cancel(short, w.index, r.Number) // if it fails, nothing is known
	})
	answer, err := slot.Call(patient, request)
	if stop() { // ctx has not ended
		return answer, ended(err)
	}
	<-told
	switch {
	case err == nil && state == Finished, err == nil && !failed(answer):
		return answer, nil
	case err != nil && !errors.Is(err, context.Canceled):
		return nil, ended(err)
	case err == nil:
		defer func() {
			slot.Release()
			c.giveBack(w)
		}()
		if r.Op == OpFunc || r.Op == OpValue {
			return nil, c.gaveUp(ctx, answer)
		}
	}
	return nil, cancelled(ctx, state, err == nil)
}

// gaveUp is the error of a wait for a name, which says what the program knew of it.
func (c *Client) gaveUp(ctx context.Context, answer []byte) error {
	var a Answer
	if a.Parse(answer, c.codec) != nil {
		return never(ctx)
	}
	said, ok := errors.AsType[*core.Error](c.codec.Error(a.Values))
	if !ok {
		return never(ctx)
	}
	about := *said
	about.Kind = ctx.Err()
	return &about
}

// ended gives an error of the mailbox its meaning.
func ended(err error) error {
	if err != nil && !errors.Is(err, ErrClosed) {
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	return err
}

// failed reports whether an answer says that a call has failed.
func failed(answer []byte) bool { return len(answer) > 0 && Kind(answer[0]) == Failed }

// never is the error of a call that has not begun when ctx ended.
func never(ctx context.Context) error { return cancelled(ctx, NeverBegan, true) }

// cancelled is the error of a call whose context has ended.
func cancelled(ctx context.Context, state State, over bool) error {
	e := &core.Error{Op: "call", Kind: ctx.Err()}
	switch {
	case state == NeverBegan:
		e.Err = errors.New("the function has not begun, and never will")
	case over:
		e.Err = errors.New("the function was interrupted by an exception")
	default:
		e.Err = fmt.Errorf("the function still runs: the exception has not ended it within %v", grace)
		e.Remedy = "let the function return to Python code sooner, or end the session"
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) || cause.Error() != ctx.Err().Error() {
		e.Err = fmt.Errorf("%w: %w", cause, e.Err)
	}
	return e
}

// read reads an answer.
func (c *Client) read(ctx context.Context, answer []byte, a *Answer) error {
	err := a.Parse(answer, c.codec)
	if err == nil && a.Kind == outside {
		answer, err = c.outside(ctx, a)
		if err == nil {
			err = a.Parse(answer, c.codec)
		}
		if err == nil && a.Kind == outside {
			err = errors.New("an answer that goes on in another")
		}
	} else if err == nil {
		a.Values = append([]byte(nil), a.Values...)
	}
	if err != nil {
		c.room.Release(granted(answer, c.codec)...)
		return &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	if a.Kind != Done {
		c.release(a)
		a.Leases = a.Leases[:0]
	}
	if a.Kind == Failed {
		return c.codec.Error(a.Values)
	}
	return nil
}

// outside reads the answer that is in a lease's memory.
func (c *Client) outside(ctx context.Context, a *Answer) ([]byte, error) {
	if len(a.Leases) != 1 {
		return nil, fmt.Errorf("an answer in %d leases", len(a.Leases))
	}
	return c.room.Take(context.WithoutCancel(ctx), a.Leases[0])
}
