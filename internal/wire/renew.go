package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	pb "github.com/ndbridge/ndbridge/internal/gen/ndbridge/v1"
)

// Renew asks a [contract.Renewer] about leases, 256 at most, and writes the answers into them.
func (c *Client) Renew(ctx context.Context, leases []contract.Renewal) {
	const op = "renew"
	fail := func(err error) {
		for i := range leases {
			leases[i].Err = err
		}
	}
	c.mu.Lock()
	able := c.renew
	c.mu.Unlock()
	if !able {
		fail(c.local(op, "", core.ErrUnsupported, errors.New("this plugin renews no lease")))
		return
	}
	req, files := &pb.RenewRequest{}, make([]<-chan arrival, len(leases))
	for i, l := range leases {
		m := &pb.Renewal{Lease: uint64(l.Lease), Segment: uint64(l.Has), Writable: l.Writable, Token: newToken()}
		req.Leases, files[i] = append(req.Leases, m), c.side.expect(m.GetToken())
		defer c.side.forget(m.GetToken(), files[i])
	}
	callCtx, done := c.begin(ctx)
	defer done()
	resp, err := c.rpc.Renew(callCtx, req, callOptions()...)
	if err == nil && len(resp.GetLeases()) != len(leases) {
		fail(c.violated(op, "", fmt.Errorf("%d leases in the answer, expected %d", len(resp.GetLeases()), len(leases))))
		return
	}
	if err != nil {
		fail(c.failed(ctx, op, "", err))
		return
	}
	for i, m := range resp.GetLeases() {
		l := &leases[i]
		if m.GetError() != nil {
			l.Err = c.complete(errorToCore(m.GetError()), op, "")
		}
		if l.Err != nil && m.GetSegment() == nil {
			continue
		}
		segment, err := segmentToCore(m.GetSegment())
		offset := m.GetOffset()
		if err == nil && (offset < 0 || offset > segment.Size) {
			err = fmt.Errorf("offset %d in a segment of %d bytes", offset, segment.Size)
		}
		if err != nil {
			l.Err = c.violated(op, "", err)
			continue
		}
		l.Segment, l.Offset = segment, int(offset)
		if l.Err == nil && segment.ID != l.Has {
			l.File, l.Err = c.arrived(ctx, callCtx, op, segment.ID, files[i])
		}
	}
}

func (s *service) Renew(ctx context.Context, req *pb.RenewRequest) (*pb.RenewResponse, error) {
	const op = "renew"
	if err := s.ready(op); err != nil {
		return nil, err
	}
	r, ok := s.producer.(contract.Renewer)
	if !ok {
		return nil, toStatus(&core.Error{Op: op, Kind: core.ErrUnsupported})
	}
	if n := len(req.GetLeases()); n > maxRenewals {
		return nil, violation(op, fmt.Errorf("%d leases in one call, expected at most %d", n, maxRenewals))
	}
	resp := &pb.RenewResponse{}
	var loans []loan
	var lent []*pb.Renewed // one for each
	for _, l := range req.GetLeases() {
		if err := ctx.Err(); err != nil {
			return nil, toStatus(&core.Error{Op: op, Kind: err})
		}
		m := &pb.Renewed{}
		resp.Leases = append(resp.Leases, m)
		segment, offset, err := r.Renew(ctx, contract.LeaseID(l.GetLease()))
		if err != nil {
			m.Error = errorToProto(err)
			continue
		}
		m.Segment, m.Offset = segmentToProto(segment), int64(offset)
		if segment.ID != contract.SegmentID(l.GetSegment()) {
			loans, lent = append(loans, loan{segment: segment.ID, writable: l.GetWritable(), token: l.GetToken()}), append(lent, m)
		}
	}
	s.lend(ctx, loans)
	for i, l := range loans {
		if l.err != nil {
			lent[i].Error = errorToProto(l.err)
		}
	}
	return resp, nil
}
