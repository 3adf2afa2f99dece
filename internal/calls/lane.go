package calls

import "context"

// Lane is a worker that carries what the program calls. One goroutine uses it at a time.
type Lane struct {
	client *Client
	worker *caller
}

// Lane makes one more lane.
func (c *Client) Lane(ctx context.Context) (*Lane, error) {
	if !c.use() {
		return nil, ErrClosed
	}
	defer c.using.Done()
	w, err := c.grow(ctx)
	if err != nil {
		return nil, err
	}
	w.lane = true
	return &Lane{client: c, worker: w}, nil
}

// Call is [Client.Call] on the lane: the request does not wait for a worker.
func (l *Lane) Call(ctx context.Context, r *Request, a *Answer) error {
	c := l.client
	if !c.use() {
		if r.Over != nil {
			r.Over()
		}
		return ErrClosed
	}
	defer c.using.Done()
	return c.ask(ctx, l.worker, r, a)
}

// use keeps the memory until using is told that it is done, unless the client is closed.
func (c *Client) use() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.using.Add(1)
	return true
}
