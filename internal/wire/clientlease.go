package wire

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Lease implements contract.Producer. If it fails, nothing stays leased, whatever the other side made of
// the call.
func (c *Client) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	const op = "lease"
	policy, err := enumToProto(copyPolicies(), req.Copy)
	if err != nil {
		return contract.Lease{}, c.local(op, name, core.ErrConfig, err)
	}
	callCtx, done := c.begin(ctx)
	defer done()
	message := &pb.LeaseRequest{
		Token: newToken(), Name: text(name), Writable: req.Writable, Copy: policy, NoWait: req.NoWait, NoCode: req.NoCode,
	}
	resp, err := c.rpc.Lease(callCtx, message, callOptions()...)
	if err != nil {
		if _, said := detailOf(err); !said { // it may have been granted all the same
			c.abandon(ctx, message.GetToken())
		}
		return contract.Lease{}, c.failed(ctx, op, name, err)
	}
	lease, err := leaseToCore(resp.GetLease(), req)
	if err != nil {
		c.abandon(ctx, message.GetToken())
		return contract.Lease{}, c.violated(op, name, err)
	}
	return lease, nil
}

// Refresh implements contract.Refresher. If it fails, nothing new stays leased. It does not know what the lease
// was granted for, which the caller checks: the lease's Check.
func (c *Client) Refresh(ctx context.Context, id contract.LeaseID) (contract.Lease, bool, error) {
	const op = "refresh"
	c.mu.Lock()
	able := c.refresh
	c.mu.Unlock()
	if !able {
		return contract.Lease{}, false, c.local(op, "", core.ErrUnsupported, errors.New("this plugin looks at no array again"))
	}
	callCtx, done := c.begin(ctx)
	defer done()
	message := &pb.RefreshRequest{Token: newToken(), Lease: uint64(id)}
	resp, err := c.rpc.Refresh(callCtx, message, callOptions()...)
	if err != nil {
		if _, said := detailOf(err); !said { // it may have been granted all the same
			c.abandon(ctx, message.GetToken())
		}
		return contract.Lease{}, false, c.failed(ctx, op, "", err)
	}
	lease, changed := contract.Lease{ID: id}, resp.GetLease() != nil
	if changed {
		lease, err = leaseFromProto(resp.GetLease())
	} else {
		lease.Fence, err = fenceToCore(resp.GetFence())
	}
	if err != nil {
		c.abandon(ctx, message.GetToken())
		return contract.Lease{}, false, c.violated(op, "", err)
	}
	return lease, changed, nil
}

// abandon releases, in the background, whatever the Lease call with that token granted: the caller's
// own context may have ended.
func (c *Client) abandon(ctx context.Context, token uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ctx.Err() != nil {
		return // the end of the session releases all
	}
	ctx = context.WithoutCancel(ctx)
	c.cleanups.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, cleanupWait)
		defer cancel()
		ctx, done := c.begin(ctx)
		defer done()
		// If this fails, the session has ended, or the other side does not answer: then no call
		// could release anything.
		_, _ = c.rpc.Release(ctx, &pb.ReleaseRequest{Tokens: []uint64{token}}, callOptions()...)
	})
}

// Release implements contract.Producer.
func (c *Client) Release(ctx context.Context, ids ...contract.LeaseID) error {
	callCtx, done := c.begin(ctx)
	defer done()
	for chunk := range slices.Chunk(ids, maxReleases) {
		req := &pb.ReleaseRequest{Leases: make([]uint64, 0, len(chunk))}
		for _, id := range chunk {
			req.Leases = append(req.Leases, uint64(id))
		}
		if _, err := c.rpc.Release(callCtx, req, callOptions()...); err != nil {
			return c.failed(ctx, "release", "", err)
		}
	}
	return nil
}
