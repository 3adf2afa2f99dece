package handoff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// ErrAsk says that the ring does not have the answer: it is to be asked for by gRPC.
var ErrAsk = errors.New("ask by gRPC")

// Releases is where releases wait for a request that takes them along.
type Releases interface {
	// Take moves pending releases behind buf, as many as it has room for. Each Take is followed by one
	// Taken with the same turn.
	Take(buf []core.LeaseID) (ids []core.LeaseID, turn int)
	// Taken says whether they were handed over. If not, they are pending again.
	Taken(ids []core.LeaseID, turn int, done bool)
}

// Client asks through a ring. All methods are safe for concurrent use.
type Client struct {
	ring    *ring.Client
	mapping *shm.Mapping
	stray   func(core.LeaseID)
	calls   []call // one for each lane; whoever has the lane has it

	last atomic.Uint32 // number of the last source

	begin time.Time // of all times

	mu       sync.Mutex
	named    map[string]*Source
	closed   bool
	sweeping bool
	sweeper  sync.WaitGroup // grows only while closed is false
	stop     chan struct{}
}

// call is the memory of one call.
type call struct {
	request  []byte
	releases []core.LeaseID
}

// NewClient maps the ring that a producer has announced, whose descriptor stays the caller's. The error
// says that the producer lied about it. stray is called with leases that were granted too late, when
// nobody waited for them any more.
func NewClient(file *os.File, r Ring, spin time.Duration, stray func(core.LeaseID)) (*Client, error) {
	return newClient(file, r, spin, callLimit, stray)
}

func newClient(file *os.File, r Ring, spin, limit time.Duration, stray func(core.LeaseID)) (*Client, error) {
	if r.Lanes < 1 || r.Lanes > ring.MaxLanes || r.Size != ring.Size(r.Lanes) {
		return nil, fmt.Errorf("a ring of %d lanes in %d bytes", r.Lanes, r.Size)
	}
	mapping, err := receive(file, "ring", r.Size)
	if err != nil {
		return nil, err
	}
	c := &Client{mapping: mapping, stray: stray, stop: make(chan struct{}), begin: time.Now(), named: make(map[string]*Source)}
	if c.ring, err = ring.NewClient(mapping.Bytes(), spin, limit, c.abandoned); err != nil {
		return nil, errors.Join(err, mapping.Close())
	}
	c.calls = make([]call, c.ring.Lanes())
	for i := range c.calls {
		c.calls[i] = call{
			request: make([]byte, 0, ring.MaxRequest), releases: make([]core.LeaseID, 0, MaxReleases),
		}
	}
	return c, nil
}

// Close ends the calls that are under way. It is idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	c.mu.Unlock()
	c.sweeper.Wait()
	c.ring.Close()
	return c.mapping.Close()
}

// Lease asks for a lease of a source. It does not wait for a name that is not there yet, nor for a busy
// producer: then the error is [ErrAsk], as it is if the ring has ended. Other errors are that of ctx,
// and what the producer did wrong; after all of them nothing stays leased.
func (c *Client) Lease(ctx context.Context, s *Source, req core.Request, releases Releases) (Grant, error) {
	if len(s.name) > MaxName || s.isSlow(c.begin) {
		return Grant{}, ErrAsk
	}
	lane, err := c.ring.Acquire(ctx)
	if err != nil {
		return Grant{}, c.failed(err)
	}
	m := &c.calls[lane.Index]
	ids, turn := releases.Take(m.releases[:0])
	about := request{op: opLease, req: req, source: s.number, releases: ids}
	known := s.last.Load()
	if known != nil && known.req == req {
		about.known = known.number
	}
	if s.number == 0 || !s.known.Load() {
		about.name = s.name
	}
	answer, waited, err := lane.Call(ctx, appendRequest(m.request, &about))
	releases.Taken(ids, turn, err == nil)
	var grant Grant
	if err == nil {
		grant, err = c.read(s, answer, req, known)
		lane.Release()
	} else {
		err = c.failed(err)
	}
	if err == ErrAsk { //nolint:errorlint // it is never wrapped
		s.asked(c.begin, waited)
	}
	return grant, err
}

// read takes what the answer to a request for a source says, of which known was the description.
func (c *Client) read(s *Source, answer []byte, req core.Request, known *described) (Grant, error) {
	kind, err := kindOf(answer)
	if err != nil {
		return Grant{}, err
	}
	if !s.known.Load() {
		s.known.Store(true)
	}
	if !grants(kind) {
		return Grant{}, ErrAsk
	}
	grant, err := s.decode(answer, req, known)
	if err != nil {
		c.stray(leaseIDOf(answer))
	}
	return grant, err
}

// Release gives leases back, and returns when that is done, as it is then of all that requests before have
// taken along. The error is [ErrAsk] or that of ctx; some may have been given back then.
func (c *Client) Release(ctx context.Context, ids ...core.LeaseID) error {
	for {
		n := min(len(ids), MaxReleases)
		if err := c.release(ctx, ids[:n]); err != nil {
			return err
		}
		if ids = ids[n:]; len(ids) == 0 {
			return nil
		}
	}
}

func (c *Client) release(ctx context.Context, ids []core.LeaseID) error {
	lane, err := c.ring.Acquire(ctx)
	if err != nil {
		return c.failed(err)
	}
	m := &c.calls[lane.Index]
	answer, _, err := lane.Call(ctx, appendRequest(m.request, &request{op: opRelease, releases: ids}))
	if err != nil {
		return c.failed(err)
	}
	defer lane.Release()
	if kind, err := kindOf(answer); err != nil || kind != answerDone {
		return ErrAsk
	}
	return nil
}

// failed says what an error of the ring means.
func (c *Client) failed(err error) error {
	if errors.Is(err, ring.ErrClosed) {
		return ErrAsk
	}
	c.sweep()
	if errors.Is(err, ring.ErrSlow) {
		return ErrAsk
	}
	return err
}

// sweep sees to it that answers are taken that nobody waits for any more.
func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.sweeping || c.ring.Sweep() == 0 {
		return
	}
	c.sweeping = true
	c.sweeper.Go(func() {
		ticker := time.NewTicker(sweepInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-c.stop:
				return
			}
			c.mu.Lock()
			c.sweeping = c.ring.Sweep() > 0
			done := !c.sweeping
			c.mu.Unlock()
			if done {
				return
			}
		}
	})
}

// abandoned takes an answer that came too late.
func (c *Client) abandoned(answer []byte) {
	if kind, err := kindOf(answer); err == nil && grants(kind) {
		c.stray(leaseIDOf(answer))
	}
}
