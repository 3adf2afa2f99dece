package calls

import (
	"context"
	"errors"
	"fmt"
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

// ErrStuck says that a function still ran when its call had been given up for as long as Client.Patience.
var ErrStuck = errors.New("the function still ran")

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
	// Ended takes leases that are to be given back, MaxEnded at most, and writes them behind ids: a request says so.
	Ended(ids []contract.LeaseID) []contract.LeaseID
}

// Client calls functions of a program. All methods are safe for concurrent use.
type Client struct {
	// Patience is for how long a call whose context has ended waits for its function to end: then its error wraps [ErrStuck], and the
	// program is to be ended. 0: it does not wait, and the function may run on. It is set before the first call.
	Patience time.Duration
	Ends     string // what the host ends then, for errors: "the program", or "the session"

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
	numbers int            // of workers, that were given out
	unused  []int          // of them: those of workers that the program did not start
	using   sync.WaitGroup // of the memory; grows while closed is false
}

// NewClient maps the memory that a program has announced, whose descriptor stays the caller's. The settings are what it was asked for. The
// error says that the program lied about it.
func NewClient(file *os.File, m Memory, codec Codec, remote Remote, room Room, s Settings) (*Client, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	mapping, err := shm.MapSealed(file, m.Size)
	if err != nil {
		return nil, err
	}
	return &Client{
		codec: codec, remote: remote, room: room, spin: s.Spin, memory: m, mapping: mapping,
		closing: make(chan struct{}), free: make(chan struct{}, max(1, min(s.Workers, m.Mailboxes))),
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

// Call gives r to a worker, waits for its answer, and reads that into a, whose memory it uses again. Values of a are private memory. It gives r its
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
	return c.ask(ctx, w, r, a)
}

// ask is Call on a worker that the caller has.
func (c *Client) ask(ctx context.Context, w *caller, r *Request, a *Answer) error {
	r.Number = c.number.Add(1)
	answer, slot, err := c.exchange(ctx, w, r)
	if err != nil {
		return err
	}
	if w.shown && slot.Held {
		*a = w.answer
	} else if err = c.read(ctx, answer, a); err == nil && w.shown {
		c.release(a)
		err = &core.Error{Op: "call", Kind: core.ErrProtocol, Err: errors.New("the program has shown another answer before")}
	}
	w.early, w.answer = nil, Answer{} // no worker keeps a result
	op := r.Op                        // the request may be another one when it is over
	slot.Release()
	c.giveBack(w)
	if err == nil && a.Kind == Over && op != OpNext && op != OpAwait {
		err = &core.Error{Op: "call", Kind: core.ErrProtocol, Err: errors.New("only a generator has no more")}
	}
	return err
}

// exchange sends a request. The answer is valid until the slot is released, after which the worker is given back.
func (c *Client) exchange(ctx context.Context, w *caller, r *Request) (answer []byte, slot *handoff.Slot, err error) {
	slot, err = w.mailbox.Acquire(ctx)
	if err != nil { // only that of a lane may be in use, by a call that was given up and still runs
		if r.Over != nil {
			r.Over()
		}
		if !w.lane {
			c.giveBack(w)
		}
		if ctx.Err() != nil {
			return nil, nil, never(ctx)
		}
		return nil, nil, ended(err)
	}
	w.over, w.early, w.shown, w.answer = r.Over, r.Early, false, Answer{} // a call that was given up may have left some
	if r.OnGPU() {
		slot.Spin = gpuSpin
	}
	if w.early != nil {
		slot.Early = w.show
	}
	request, err := c.pack(ctx, w, r)
	if err != nil {
		slot.Release()
		c.giveBack(w)
		return nil, nil, err
	}
	w.makes = r.Op == OpFunc || r.Flags&FlagStream != 0
	answer, err = c.wait(ctx, w, slot, r, request)
	if err != nil {
		return nil, nil, err // and the worker is given back when it has answered
	}
	return answer, slot, nil
}

// gpuSpin is how long a caller looks for the answer to a call with arrays on a GPU: the program's CPU looks as long for the end of the
// GPU's work, and to be woken up takes longer than most of what a call adds to that.
const gpuSpin = 500 * time.Microsecond

// OnGPU reports whether a request has arrays on a GPU.
func (r *Request) OnGPU() bool {
	for i := range r.Arrays {
		if r.Arrays[i].Layout.Device().Kind == core.CUDA {
			return true
		}
	}
	return false
}

// pack writes a request, into memory of its own if it is long.
func (c *Client) pack(ctx context.Context, w *caller, r *Request) (request []byte, err error) {
	r.Ended = c.room.Ended(r.Ended[:0])
	defer func() {
		if err != nil {
			c.room.Release(r.Ended...)
		}
	}()
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
	slot.Send(request)
	answer, err := slot.Await(ctx)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() == nil || errors.Is(err, ErrClosed):
		slot.Abandon() //nolint:contextcheck // it outlives the call
		return nil, ended(err)
	default:
		return c.cancel(ctx, w, slot, r)
	}
}

// cancel cancels a call whose context has ended, and waits a little longer for its answer.
func (c *Client) cancel(ctx context.Context, w *caller, slot *handoff.Slot, r *Request) ([]byte, error) {
	short, over := context.WithTimeout(context.WithoutCancel(ctx), grace)
	state, _ := c.remote.Cancel(short, w.index, r.Number) // if it fails, nothing is known
	over()
	patience := grace
	if state != NeverBegan {
		patience = max(grace, c.Patience)
	}
	patient, over := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer over()
	answer, err := slot.Await(patient)
	switch {
	case err == nil && (state == Finished || !failed(answer)):
		return answer, nil
	case err == nil:
		defer func() {
			slot.Release()
			c.giveBack(w)
		}()
		if (r.Op == OpFunc || r.Op == OpValue) && state != Interrupted { // it waited for the name
			return nil, c.gaveUp(ctx, answer)
		}
		return nil, cancelled(ctx, state, true)
	}
	slot.Abandon() //nolint:contextcheck // it outlives the call
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return nil, ended(err)
	case c.Patience > 0 && state != NeverBegan:
		return nil, given(ctx, fmt.Errorf("%w %v after the exception, and %s was ended", ErrStuck, c.Patience, c.Ends), "")
	default:
		return nil, cancelled(ctx, state, false)
	}
}

// show reads an answer before it holds, and gives it to who asked.
func (c *Client) show(w *caller, answer []byte) {
	var a Answer
	if a.Parse(answer, c.codec) != nil || a.Kind != Done {
		return // what is wrong with it is said when it holds
	}
	a.Values = append([]byte(nil), a.Values...)
	w.shown, w.answer = true, a
	w.early(a)
}

// read reads an answer.
func (c *Client) read(ctx context.Context, answer []byte, a *Answer) error {
	own := a.Values[:0]
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
		a.Values = append(own, a.Values...)
	}
	if err != nil {
		a.Values = own // they may be the slot's, which is another call's soon
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
