package calls

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// caller is a worker as the host sees it. Whoever took it from idle has it alone.
type caller struct {
	index   int
	mailbox *handoff.MailboxClient
	request []byte
	makes   bool           // the answer's target is a function or a generator
	early   func(a Answer) // the request's; nil: it has none
	show    func(b []byte) // reads an answer before it holds, for early
	shown   bool           // that was done, and gave answer
	answer  Answer
	over    func() // the request's; nil: it has none
	done    func() // gives back what the request lies in; nil: it is in the mailbox
	lane    bool   // it is no worker for calls
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
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.using.Add(1)
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return w, nil
	}
	c.mu.Unlock()
	w, err := c.grow(ctx)
	if err != nil {
		c.using.Done()
		<-c.free
		return nil, err
	}
	return w, nil
}

// grow makes one more worker. It waits for the program, and holds up nobody meanwhile.
func (c *Client) grow(ctx context.Context) (w *caller, err error) {
	index, err := c.take()
	if err != nil {
		return nil, err
	}
	err = c.remote.Workers(ctx, index+1)
	if err == nil {
		w, err = c.newCaller(index) //nolint:contextcheck // what it does later outlives the call
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.unused = append(c.unused, index)
		return nil, err
	case c.closed: // and Close did not know of this one
		w.mailbox.Close()
		return nil, ErrClosed
	}
	c.workers = append(c.workers, w)
	return w, nil
}

// take gives the number of a worker that there is not.
func (c *Client) take() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.unused); n > 0 {
		index := c.unused[n-1]
		c.unused = c.unused[:n-1]
		return index, nil
	}
	if c.numbers == c.memory.Mailboxes {
		return 0, &core.Error{Op: "call", Kind: core.ErrProtocol, Err: fmt.Errorf("there are %d workers, and no more", c.numbers)}
	}
	c.numbers++
	return c.numbers - 1, nil
}

func (c *Client) newCaller(index int) (*caller, error) {
	w := &caller{index: index}
	w.show = func(answer []byte) { c.show(w, answer) }
	// A call that nobody waits for any more gives its worker back, late.
	abandoned := func(answer []byte) {
		c.discard(w, answer)
		c.giveBack(w)
	}
	var err error
	w.mailbox, err = handoff.NewMailboxClient(mailbox(c.mapping.Bytes(), w.index), c.spin, math.MaxInt64, abandoned)
	if err != nil {
		return nil, &core.Error{Op: "call", Kind: core.ErrProtocol, Err: err}
	}
	return w, nil
}

// discard gives back what an answer has that nobody waits for any more.
func (c *Client) discard(w *caller, answer []byte) {
	shown := w.answer.Leases // whoever was shown them gives them back
	w.early, w.answer = nil, Answer{}
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
	a.Leases = slices.DeleteFunc(a.Leases, func(l contract.Lease) bool {
		return slices.ContainsFunc(shown, func(s contract.Lease) bool { return s.ID == l.ID })
	})
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
	for _, f := range [...]*func(){&w.over, &w.done} {
		if do := *f; do != nil {
			*f = nil
			do()
		}
	}
}

func (c *Client) giveBack(w *caller) {
	w.letGo()
	if w.lane {
		return
	}
	c.mu.Lock()
	c.idle = append(c.idle, w)
	c.mu.Unlock()
	<-c.free
}
