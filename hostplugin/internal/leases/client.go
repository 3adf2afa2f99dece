// Package leases makes views of what a program leases, looks at them again, and gives the leases back: through
// the table of offers and the mailbox in shared memory where they have the answer, and by gRPC otherwise.
package leases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// liveWait bounds how long Live asks the program.
const liveWait = 100 * time.Millisecond

// Program is the way to a program by gRPC.
type Program interface {
	contract.Refresher
	// Renew asks about leases that a fork may have taken out of sight, and writes the answers into them.
	Renew(ctx context.Context, leases []contract.Renewal)
	Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error)
	Release(ctx context.Context, ids ...contract.LeaseID) error
}

// Options are what a client stands on.
type Options struct {
	Program  Program
	Handoff  *handoff.Client // nil: there is no shared memory
	Segments *Segments
	GPU      *imports.Importer
	GPUs     []contract.UUID // those that the program knows the host to have
	Spin     time.Duration
	Gone     <-chan struct{} // closed when the program is gone
	Ended    <-chan struct{} // closed when Why has the answer
	Why      func() error    // why the program is gone, or that the session is closed
	Finished <-chan struct{} // closed when the program's script has ended well
	Log      *slog.Logger
	// Stale is called once for each view that turns out not to be live any more, with its name, whether its holder looks at the name
	// again and again, and why. err, if it is not nil, says why that
	// cannot be helped.
	Stale func(name string, followed bool, why Staleness, err error)
}

// Staleness says why a view is not live any more.
type Staleness string

// The reasons.
const (
	StaleFork    Staleness = "the program has forked, or mapped something over an array, which made memory that existed then private to it"
	StaleRebound Staleness = "the name leads to other memory now"
)

// Client takes leases of one program. All methods are safe for concurrent use.
type Client struct {
	Options
	releases *releases
	forked   chan struct{} // has room for one

	over context.Context //nolint:containedctx // the program's own life: it ends with the program, or its script
	stop context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	leases map[*Lease]struct{}
	ids    map[contract.LeaseID]struct{} // of those that have one
	named  map[string]*Source            // of names that nobody has prepared; at most maxNamed
}

// maxNamed bounds the sources that are kept for names that nobody has prepared.
const maxNamed = 256

// Named gives the source of a name that nobody has prepared: the same one again, for the first names.
func (c *Client) Named(name string) *Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.named[name]
	if s == nil {
		s = &Source{Name: name}
		if len(c.named) < maxNamed {
			c.named[name] = s
		}
	}
	return s
}

// Source is a name to ask for. It may be used by several goroutines at once.
type Source struct {
	Name     string
	template atomic.Pointer[template] // of what was offered last under the name
	absent   atomic.Uint64            // the table's Names, plus 1, when the name was not in it
}

// Lease is a lease that stands, or an offer that was taken: the lender of a view.
type Lease struct {
	client *Client
	source *Source
	req    contract.Request
	id     contract.LeaseID // 0 for an offer
	hold   offers.Hold      // of an offer
	also   atomic.Uint64    // the lease that a view of an offer stands on, too, since a fork; 0: none
	memory core.Memory
	view   weak.Pointer[core.View] // not kept reachable, so that it can be found forgotten
	closer io.Closer               // closes it then

	publication uint64        // that was leased; 0: none, or none that the table tells of
	heap        bool          // a fork takes the memory away
	fixed       bool          // the table tells all changes: of offered memory
	unnamed     bool          // nobody can ask for the array again
	onGPU       bool          // the GPU's importer gives the lease back
	copied      bool          // the program makes the copy again in the same memory
	forks       atomic.Uint64 // the table's Forks before the program last said that the memory is the array's; 0: nobody counts them
	stale       atomic.Bool
	followed    atomic.Bool // its view was refreshed, or has come from a refresh
	frozen      atomic.Bool // stale because of a fork alone: another one is a reason to try again
	// behind is there while the program may say that nothing has changed, and the view shows the memory of before a fork. It is closed
	// when the renewal that is under way has ended.
	behind atomic.Pointer[chan struct{}]
}

// New makes a client. It must be closed.
func New(o Options) *Client {
	c := &Client{Options: o, leases: make(map[*Lease]struct{}), ids: make(map[contract.LeaseID]struct{}), named: make(map[string]*Source)}
	c.releases, c.forked = newReleases(c.giveBack), make(chan struct{}, 1)
	c.Program = &hinting{o.Program, o.Log, c.releases.add}
	c.over, c.stop = context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-c.Ended:
			c.stop(errEnded)
		case <-c.Finished:
			c.stop(errFinished)
		case <-c.over.Done():
		}
	}()
	go c.renewals()
	return c
}

// View takes a view of what a name means.
func (c *Client) View(ctx context.Context, s *Source, req contract.Request) (*core.View, error) {
	if v, err := c.takeOffer(ctx, s, req); v != nil || err != nil {
		return v, err
	}
	var results [1]handoff.Look
	forks := c.forks()
	if c.askAll(ctx, []string{s.Name}, req, results[:]) == nil && results[0].Status == handoff.Changed {
		return c.open(ctx, s, req, *results[0].Lease, forks)
	}
	return c.ask(ctx, s, req)
}

// askAll asks the mailbox for leases.
func (c *Client) askAll(ctx context.Context, names []string, req contract.Request, results []handoff.Look) error {
	if c.Handoff == nil || slices.ContainsFunc(names, func(name string) bool { return len(name) > handoff.MaxName }) {
		return handoff.ErrAsk
	}
	return broken(c.Handoff.Leases(ctx, names, req, results))
}

// broken gives an error of the mailbox its category, unless gRPC is to be asked, or the context has ended.
func broken(err error) error {
	if err == nil || errors.Is(err, handoff.ErrAsk) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &core.Error{Op: "lease", Kind: core.ErrProtocol, Err: err}
}

// ask is View by gRPC.
func (c *Client) ask(ctx context.Context, s *Source, req contract.Request) (*core.View, error) {
	forks := c.forks()
	l, err := c.Program.Lease(ctx, s.Name, req)
	if err != nil {
		return nil, err
	}
	return c.open(ctx, s, req, l, forks)
}

// Open makes a view of a lease that was granted otherwise, under a name that only tells people what it is. If it fails,
// the lease is given back.
func (c *Client) Open(ctx context.Context, name string, l contract.Lease) (*core.View, error) {
	return c.opened(ctx, &Lease{client: c, source: &Source{Name: name}, id: l.ID, unnamed: true}, l, 0)
}

// open makes a view of a lease that was granted, which it gives back if it fails.
func (c *Client) open(ctx context.Context, s *Source, req contract.Request, l contract.Lease, forks uint64) (*core.View, error) {
	return c.opened(ctx, &Lease{client: c, source: s, req: req, id: l.ID}, l, forks)
}

func (c *Client) opened(ctx context.Context, lease *Lease, l contract.Lease, forks uint64) (*core.View, error) {
	lease.heap = l.Route == contract.RouteSharedHeap
	lease.forks.Store(forks)
	_, lease.onGPU = gpuOf(l.Handle)
	lease.copied = contract.Copied(l.Route)
	if err := c.add(lease); err != nil {
		return nil, err
	}
	if l.Version != 0 {
		lease.publication, lease.fixed = c.publication(lease.source, l.Version)
	}
	v, err := c.view(ctx, lease, &l)
	if err != nil {
		return nil, errors.Join(err, c.end(lease))
	}
	return v, nil
}

// view makes the view of a lease that was added.
func (c *Client) view(ctx context.Context, lease *Lease, l *contract.Lease) (v *core.View, err error) {
	layout := l.Layout
	if lease.onGPU {
		lease.memory, layout, err = c.ofGPU(ctx, *l, lease)
	} else {
		lease.memory, err = c.ofHost(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	v, err = core.NewView(layout, lease.memory, &core.ViewOptions{
		Name: lease.source.Name, Framework: l.Framework, Route: l.Route, Reason: l.Reason, Quirks: l.Quirks,
		Writable: l.Writable, Version: l.Version, Published: l.Published, Lender: lease,
	})
	if err != nil {
		if lease.memory != nil {
			err = errors.Join(err, lease.memory.Close())
		}
		return nil, err
	}
	c.mu.Lock()
	lease.view, lease.closer = weak.Make(v), v.Forgotten()
	closed := c.closed
	c.mu.Unlock()
	if closed { // Close may have looked at the leases before
		_ = v.Close() // it gives the lease back
		return nil, &core.Error{Kind: core.ErrClosed}
	}
	return v, nil
}

// ofHost maps host memory: nil for an array without elements.
func (c *Client) ofHost(ctx context.Context, l *contract.Lease) (core.Memory, error) {
	switch handle := l.Handle.(type) {
	case nil:
		return nil, nil //nolint:nilnil // as said
	case contract.Segment:
		m, err := c.Segments.use(ctx, handle, l.Writable)
		if err != nil {
			return nil, err // not m: a nil *Memory would be a core.Memory
		}
		return m, nil
	default:
		return nil, fmt.Errorf("a handle of type %T", handle)
	}
}

// ofGPU maps memory of a GPU. The layout is the lease's, on the device as the host counts.
func (c *Client) ofGPU(ctx context.Context, l contract.Lease, lease *Lease) (core.Memory, core.Layout, error) {
	if gpu, _ := gpuOf(l.Handle); !slices.Contains(c.GPUs, gpu) {
		return nil, core.Layout{}, &core.Error{
			Kind: core.ErrProtocol, Err: fmt.Errorf("memory of %v, which is none of the host's GPUs", gpu),
		}
	}
	m, device, err := c.GPU.Memory(ctx, l, func() { _ = c.end(lease) }) // it never fails
	if err != nil {
		return nil, core.Layout{}, err
	}
	spec := l.Layout.Spec()
	spec.Device = device
	layout, err := core.NewLayout(spec)
	return m, layout, err // never: only the device is another
}

// add puts a lease among those that stand. One whose ID stands already belongs to another view: the error wraps
// core.ErrProtocol.
func (c *Client) add(l *Lease) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.id != 0 {
		if _, stands := c.ids[l.id]; stands {
			return &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("lease %d was granted twice", l.id)}
		}
		c.ids[l.id] = struct{}{}
	}
	c.leases[l] = struct{}{}
	return nil
}

// end gives a lease back.
func (c *Client) end(l *Lease) error {
	c.mu.Lock()
	delete(c.leases, l)
	delete(c.ids, l.id)
	also := contract.LeaseID(l.also.Load())
	delete(c.ids, also)
	c.mu.Unlock()
	if also != 0 {
		c.releases.add(also)
	}
	switch {
	case l.id != 0:
		c.releases.add(l.id)
	case c.letGo(l.hold):
		c.releases.add(contract.LeaseID(l.hold.Ticket))
	}
	return nil
}

// Release implements [core.Lender].
func (l *Lease) Release() error {
	if l.onGPU {
		return nil // the importer does it, when the GPU's work is done
	}
	return l.client.end(l)
}

// Stray gives back a lease that was granted when nobody waited for it any more, unless it is that of a view.
func (c *Client) Stray(id contract.LeaseID) {
	c.mu.Lock()
	_, stands := c.ids[id]
	c.mu.Unlock()
	if !stands {
		c.releases.add(id)
	}
}

// Flush returns when all that was given back is.
func (c *Client) Flush(ctx context.Context) { c.releases.flush(ctx) }

// Pending takes leases that are to be given back, most at most, and writes them behind ids. The caller tells the program.
func (c *Client) Pending(ids []contract.LeaseID, most int) []contract.LeaseID {
	return c.releases.take(ids, most)
}

// giveBack ends leases, and reports false if the program did not get to it before ctx ended. To end one again does
// nothing.
func (c *Client) giveBack(ctx context.Context, ids []contract.LeaseID) bool {
	if c.Handoff != nil && c.Handoff.Release(ctx, ids...) == nil {
		return true
	}
	err := c.Program.Release(ctx, ids...)
	return err == nil || ctx.Err() == nil // else the session ends, which releases everything
}

// CloseViews closes all views, those that were forgotten too. After that no more are made. The error says which memory
// could not be unmapped.
func (c *Client) CloseViews() error {
	c.mu.Lock()
	c.closed = true
	views := make([]io.Closer, 0, len(c.leases))
	for l := range c.leases {
		if v := l.view.Value(); v != nil {
			views = append(views, v)
		} else if l.closer != nil {
			views = append(views, l.closer)
		}
	}
	c.mu.Unlock()
	var errs []error
	for _, view := range views {
		errs = append(errs, view.Close())
	}
	return errors.Join(errs...)
}

// Closed reports whether CloseViews was called.
func (c *Client) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close ends what goes on in the background. What is pending then is not given back. It is called once.
func (c *Client) Close() {
	c.releases.close()
	c.stop(errEnded)
}
