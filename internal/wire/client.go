package wire

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

const (
	// descriptorWait bounds the wait for a descriptor after the call that asked for it has
	// succeeded. The descriptor was sent before the answer, so it is there at once, or never, however long a busy machine
	// takes to read it.
	descriptorWait = 10 * time.Second

	// cleanupWait bounds the release of what a failed Lease call may have granted.
	cleanupWait = 2 * time.Second
)

// ClientOptions are the options of a Client. The zero value is useful.
type ClientOptions struct {
	// Program is the program's name for errors that this side makes.
	Program string

	// Unavailable tells why the program is gone: the cause of the core.ErrUnavailable errors of calls
	// that find it gone, or of core.ErrPython if it is one. It may wait, under ctx, until that is known.
	// Nil, and nil results, stand for the connection's own error.
	Unavailable func(ctx context.Context) error
}

// Client is the host's contract.Producer, contract.Refresher and contract.Waiter for a program in another process. All methods
// are safe for concurrent use. Their errors are *core.Error; those that the program's side made are
// marked as Remote. Calls end with core.ErrUnavailable as soon as the side socket ends.
type Client struct {
	rpc  pb.ProducerServiceClient
	side *Side
	opts ClientOptions

	//nolint:containedctx // the client's own lifetime: it ends with the side socket or with Close
	ctx context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	waits    bool // the other side serves Wait
	search   bool // likewise
	handoff  handoff.Memory
	calls    calls.Memory
	refresh  bool // the other side serves Refresh
	renew    bool
	closed   bool
	cleanups sync.WaitGroup // grows only while closed is false
}

var (
	_ contract.Producer  = (*Client)(nil)
	_ contract.Refresher = (*Client)(nil)
	_ contract.Waiter    = (*Client)(nil)
)

// NewClient makes a client over cc and side, both of which stay the caller's.
func NewClient(cc grpc.ClientConnInterface, side *Side, opts ClientOptions) *Client {
	c := &Client{rpc: pb.NewProducerServiceClient(cc), side: side, opts: opts}
	c.ctx, c.end = context.WithCancelCause(side.ctx)
	return c
}

// Close ends all calls with core.ErrClosed and waits for what they left to do. It does not close the
// connection. It is idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(core.ErrClosed)
	c.cleanups.Wait()
	return nil
}

// Wish is what a host wants of shared memory.
type Wish struct {
	Handoff handoff.Settings
	Calls   calls.Settings
}

// Open begins the session. It must be called once, before any other call. The program's script
// starts when the other side has taken the settings.
func (c *Client) Open(ctx context.Context, settings contract.Settings, wish Wish) (contract.Info, error) {
	message, err := settingsToProto(settings)
	if err != nil {
		return contract.Info{}, c.local("open", "", core.ErrConfig, err)
	}
	message.Handoff, message.Calls = handoffToProto(wish.Handoff), callsToProto(wish.Calls)
	callCtx, done := c.begin(ctx)
	defer done()
	resp, err := c.rpc.Open(callCtx, &pb.OpenRequest{Settings: message}, callOptions()...)
	if err != nil {
		return contract.Info{}, c.failed(ctx, "open", "", err)
	}
	info, err := infoToCore(resp.GetInfo())
	if err != nil {
		return contract.Info{}, c.violated("open", "", err)
	}
	c.mu.Lock()
	c.waits = resp.GetCapabilities().GetWait()
	c.refresh = resp.GetCapabilities().GetRefresh()
	c.renew = resp.GetCapabilities().GetRenew()
	c.search = resp.GetCapabilities().GetSearch()
	c.handoff = memoryToCore(resp.GetCapabilities().GetHandoff())
	c.calls = callMemoryToCore(resp.GetCapabilities().GetCalls())
	c.mu.Unlock()
	c.side.sayOpened()
	return info, nil
}

// Info implements contract.Producer.
func (c *Client) Info(ctx context.Context) (contract.Info, error) {
	callCtx, done := c.begin(ctx)
	defer done()
	resp, err := c.rpc.Info(callCtx, &pb.InfoRequest{}, callOptions()...)
	if err != nil {
		return contract.Info{}, c.failed(ctx, "info", "", err)
	}
	info, err := infoToCore(resp.GetInfo())
	if err != nil {
		return contract.Info{}, c.violated("info", "", err)
	}
	return info, nil
}

// Arrays implements contract.Producer.
func (c *Client) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		callCtx, done := c.begin(ctx)
		defer done() // ends the stream when the caller breaks off
		stream, err := c.rpc.Arrays(callCtx, &pb.ArraysRequest{}, callOptions()...)
		if err != nil {
			yield(contract.Entry{}, c.failed(ctx, "list", "", err))
			return
		}
		count := 0
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(contract.Entry{}, c.failed(ctx, "list", "", err))
				return
			}
			if count += len(resp.GetEntries()); count > maxEntries {
				yield(contract.Entry{}, c.violated("list", "", fmt.Errorf("more than %d arrays", maxEntries)))
				return
			}
			for _, message := range resp.GetEntries() {
				entry, err := entryToCore(message)
				if err != nil {
					yield(contract.Entry{}, c.violated("list", "", err))
					return
				}
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// Descriptor implements contract.Producer.
func (c *Client) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	token := newToken()
	arrived := c.side.expect(token)
	defer c.side.forget(token, arrived)
	callCtx, done := c.begin(ctx)
	defer done()
	req := &pb.DescriptorRequest{Segment: uint64(id), Writable: writable, Token: token}
	if _, err := c.rpc.Descriptor(callCtx, req, callOptions()...); err != nil {
		return nil, c.failed(ctx, opDescriptor, "", err)
	}
	return c.arrived(ctx, callCtx, opDescriptor, id, arrived)
}

// arrived gives the file that has come over the side socket before the answer of a call.
func (c *Client) arrived(ctx, callCtx context.Context, op string, id contract.SegmentID, arrived <-chan arrival) (*os.File, error) {
	timeout := time.NewTimer(descriptorWait)
	defer timeout.Stop()
	select {
	case a := <-arrived:
		if a.err != nil {
			return nil, c.violated(op, "", a.err)
		}
		return a.file, nil
	case <-callCtx.Done():
		return nil, c.failed(ctx, op, "", callCtx.Err())
	case <-timeout.C:
		err := fmt.Errorf("the descriptor of segment %d did not come within %v", id, descriptorWait)
		return nil, c.violated(op, "", err)
	}
}

// Wait implements contract.Waiter. Producers that stand in no program give core.ErrUnsupported.
func (c *Client) Wait(ctx context.Context) error {
	c.mu.Lock()
	waits := c.waits
	c.mu.Unlock()
	if !waits {
		return c.local("wait", "", core.ErrUnsupported, errors.New("this plugin runs no script"))
	}
	callCtx, done := c.begin(ctx)
	defer done()
	if _, err := c.rpc.Wait(callCtx, &pb.WaitRequest{}, callOptions()...); err != nil {
		return c.failed(ctx, "wait", "", err)
	}
	return nil
}

func callOptions() []grpc.CallOption {
	return []grpc.CallOption{grpc.MaxCallRecvMsgSize(maxMessage)}
}

// newToken gives a number that the other side cannot have seen before.
func newToken() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// begin gives a context that ends with ctx and with the client. The caller must call done.
func (c *Client) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	if c.ctx.Err() != nil {
		cancel() // AfterFunc runs it in a goroutine, which a quick call outruns
	}
	return ctx, func() {
		stop()
		cancel()
	}
}

// failed turns the error of a call into a *core.Error; ctx is the caller's. What the program said
// counts first, then who ended the call, then what gRPC thinks.
func (c *Client) failed(ctx context.Context, op, array string, err error) error {
	remote, said := detailOf(err)
	ended := said && (errors.Is(remote.Kind, context.Canceled) || errors.Is(remote.Kind, context.DeadlineExceeded))
	switch {
	case said && !ended:
		return c.complete(remote, op, array)
	case ctx.Err() != nil:
		e := c.local(op, array, ctx.Err(), context.Cause(ctx))
		if said {
			e.Remedy = remote.Remedy // what the program knew of the wait
		}
		return e
	case c.ctx.Err() != nil:
		return c.gone(ctx, op, array, c.ended())
	case said && errors.Is(remote.Kind, context.DeadlineExceeded):
		return c.complete(remote, op, array)
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled: // also what a server says that is being stopped
		return c.gone(ctx, op, array, clipped{err})
	case codes.DeadlineExceeded: // the other side's clock was first
		return c.local(op, array, context.DeadlineExceeded, nil)
	case codes.Unimplemented:
		return &core.Error{
			Op: op, Program: c.opts.Program, Object: array, Kind: core.ErrVersion, Err: clipped{err},
			Remedy: "use host and plugin of the same release",
		}
	default:
		return c.violated(op, array, clipped{err})
	}
}

// ended tells why no more calls can be made, or nil.
func (c *Client) ended() error { return context.Cause(c.ctx) }

// complete fills in what the program's side left out.
func (c *Client) complete(e *core.Error, op, array string) error {
	if e.Op == "" {
		e.Op = op
	}
	if e.Program == "" {
		e.Program = c.opts.Program
	}
	if e.Object == "" {
		e.Object = array
	}
	return e
}

// gone is the error of a call that found the connection ended; err is what the connection says.
func (c *Client) gone(ctx context.Context, op, array string, err error) error {
	if errors.Is(c.ended(), core.ErrClosed) {
		return c.local(op, array, core.ErrClosed, nil)
	}
	kind := core.ErrUnavailable
	if c.opts.Unavailable != nil {
		if cause := c.opts.Unavailable(ctx); cause != nil {
			err = cause
			if errors.Is(cause, core.ErrPython) {
				kind = core.ErrPython // as it was before the end
			}
		}
	}
	return c.local(op, array, kind, err)
}

func (c *Client) violated(op, array string, err error) error {
	return c.local(op, array, core.ErrProtocol, err)
}

func (c *Client) local(op, array string, kind, err error) *core.Error {
	return &core.Error{Op: op, Program: c.opts.Program, Object: array, Kind: kind, Err: err}
}
