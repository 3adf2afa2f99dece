// Package lessor gets leases from a program and gives them back: from the board in shared memory where the
// program offers them there, through the ring if that has the answer, and by gRPC else.
package lessor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/releases"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// Client is the way to the program by gRPC.
type Client interface {
	Ring() handoff.Ring // what the plugin offers; the zero value is nothing
	Lease(ctx context.Context, name string, req core.Request) (core.Lease, error)
	Descriptor(ctx context.Context, id core.SegmentID, writable bool) (*os.File, error)
	Release(ctx context.Context, ids ...core.LeaseID) error
}

// Lessor asks one program. All methods are safe for concurrent use.
type Lessor struct {
	client   Client
	ring     *handoff.Client      // nil: none
	board    *handoff.BoardClient // nil: none
	releases *releases.Queue
	stop     chan struct{}
	stopped  chan struct{}
}

// Source is a name to ask for.
type Source struct {
	name     string
	prepared *handoff.Source // nil: there is no ring
}

// Open takes up what the program's plugin offers in an open session, until Close or until gone is closed.
// Callers look for an answer for as long as spin before they sleep. stray is called with leases that
// nobody waited for any more. An error that wraps core.ErrProtocol says that the plugin lied.
func Open(ctx context.Context, client Client, gone <-chan struct{}, spin time.Duration, stray func(core.LeaseID)) (*Lessor, error) {
	l := &Lessor{client: client, stop: make(chan struct{}), stopped: make(chan struct{})}
	if r := client.Ring(); r != (handoff.Ring{}) {
		err := l.mapped(ctx, r.Segment, func(file *os.File) (err error) {
			l.ring, err = handoff.NewClient(file, r, spin, func(id core.LeaseID) {
				if !handoff.OnBoard(id) { // else it was no lease
					stray(id)
				}
			})
			return err
		})
		if err == nil && r.Board != (handoff.Board{}) {
			err = l.mapped(ctx, r.Board.Segment, func(file *os.File) (err error) {
				l.board, err = handoff.NewBoardClient(file, r.Board)
				return err
			})
		}
		// A program that has ended already says why to who asks it for a lease.
		if err != nil && !errors.Is(err, core.ErrUnavailable) {
			l.end()
			return nil, err
		}
	}
	l.releases = releases.New(releaser{l}) //nolint:contextcheck // what is given back outlives the call
	go func() {
		defer close(l.stopped)
		select {
		case <-gone:
		case <-l.stop:
		}
		l.end()
	}()
	return l, nil
}

// mapped hands the memory of a segment over, that the plugin has announced.
func (l *Lessor) mapped(ctx context.Context, id core.SegmentID, to func(*os.File) error) error {
	file, err := l.client.Descriptor(ctx, id, true)
	if err != nil {
		return err
	}
	if err := errors.Join(to(file), file.Close()); err != nil {
		return &core.Error{Op: "open", Kind: core.ErrProtocol, Err: fmt.Errorf("hand-off: %w", err)}
	}
	return nil
}

// end lets no more go through shared memory, but for what is given back to the board.
func (l *Lessor) end() {
	if l.board != nil {
		l.board.Close()
	}
	if l.ring != nil {
		_ = l.ring.Close() // fails only if the memory was not mapped
	}
}

// Close ends what is under way through the ring. What is pending then is not given back. It is called
// once.
func (l *Lessor) Close() {
	close(l.stop)
	<-l.stopped
	l.releases.Close()
}

// Source prepares a name that is asked for again and again.
func (l *Lessor) Source(name string) *Source {
	s := &Source{name: name}
	if l.ring != nil {
		s.prepared = l.ring.Source(name)
	}
	return s
}

// Named is a source of a name that nobody has prepared.
func (l *Lessor) Named(name string) *Source {
	s := &Source{name: name}
	if l.ring != nil {
		s.prepared = l.ring.Named(name)
	}
	return s
}

// Lease is the method of core.Producer. It makes no garbage if the program says through the ring what it
// said of the source the last time.
func (l *Lessor) Lease(ctx context.Context, s *Source, req core.Request) (handoff.Grant, error) {
	if ctx.Err() != nil {
		return handoff.Grant{}, ended(ctx)
	}
	if s.prepared == nil {
		return l.ask(ctx, s, req)
	}
	if l.board != nil {
		if grant, ok, err := l.board.Lease(s.prepared, req); err != nil {
			return handoff.Grant{}, &core.Error{Op: "lease", Kind: core.ErrProtocol, Err: err}
		} else if ok {
			return grant, nil
		}
	}
	grant, err := l.ring.Lease(ctx, s.prepared, req, l.releases)
	switch {
	case err == nil:
		return grant, nil
	case errors.Is(err, handoff.ErrAsk):
		return l.ask(ctx, s, req)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return handoff.Grant{}, ended(ctx)
	default:
		return handoff.Grant{}, &core.Error{Op: "lease", Kind: core.ErrProtocol, Err: err}
	}
}

// ended is the error of a call whose context has ended.
func ended(ctx context.Context) error {
	return &core.Error{Op: "lease", Kind: ctx.Err(), Err: context.Cause(ctx)}
}

// ask is Lease by gRPC.
func (l *Lessor) ask(ctx context.Context, s *Source, req core.Request) (handoff.Grant, error) {
	lease, err := l.client.Lease(ctx, s.name, req)
	if err != nil {
		return handoff.Grant{}, err
	}
	return handoff.Grant{ID: lease.ID, Fence: lease.Fence, Lease: &lease}, nil
}

// Release gives a lease back: with the next request, or soon, or at once if it is the board's.
func (l *Lessor) Release(id core.LeaseID) {
	if handoff.OnBoard(id) {
		var last bool
		if id, last = l.board.Release(id); !last {
			return
		}
	}
	l.releases.Add(id)
}

// Flush returns when all that was given back is.
func (l *Lessor) Flush(ctx context.Context) {
	l.releases.Flush(ctx)
	if l.ring != nil {
		_ = l.ring.Release(ctx) // waits for what went with requests; it fails only if the session ends
	}
}

// releaser gives back what no request has taken along.
type releaser struct{ *Lessor }

// Release implements releases.Releaser.
func (r releaser) Release(ctx context.Context, ids ...core.LeaseID) error {
	if r.ring != nil && r.ring.Release(ctx, ids...) == nil {
		return nil
	}
	return r.client.Release(ctx, ids...)
}
