package arrays

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// Room keeps the messages of calls that are too long for a mailbox. It implements calls.Room.
type Room struct {
	Space *Space
	Open  func(ctx context.Context, name string, l contract.Lease) (*core.View, error) // makes a view of a lease, or gives it back
	Stray func(id contract.LeaseID)                                                    // gives a lease back
	Over  func(ids []contract.LeaseID, most int) []contract.LeaseID                    // takes leases that are to be given back
}

// Put implements calls.Room.
func (r *Room) Put(ctx context.Context, message []byte) (calls.Argument, func(), error) {
	m, err := New(int64(len(message)))
	if err != nil {
		return calls.Argument{}, nil, err
	}
	done := func() { _ = m.Close() } // memory that cannot be unmapped is of no use to anybody here
	copy(m.Bytes(), message)
	a := calls.Argument{ReadOnly: true}
	if a.Segment, err = r.Space.Segment(ctx, m.File, false); err == nil {
		a.Layout, err = core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{len(message)}})
	}
	a.Word = a.Segment
	if err != nil {
		done()
		return calls.Argument{}, nil, err
	}
	return a, done, nil
}

// longest is how many bytes a message may have. A form has 1 GiB at most, and leases come beside it.
const longest = 2 << 30

// Take implements calls.Room.
func (r *Room) Take(ctx context.Context, l contract.Lease) ([]byte, error) {
	// An array may have more elements than bytes of memory: those of one stride of zero are all in the same place.
	if l.Layout.DType() != core.Uint8 || !l.Layout.Contiguous() || l.Layout.NBytes() > longest {
		r.Stray(l.ID)
		return nil, errors.New("the answer is not a row of bytes, or too long")
	}
	v, err := r.Open(ctx, "an answer", l)
	if err != nil {
		return nil, err
	}
	message := make([]byte, v.NBytes())
	_, err = core.CopyBytes(ctx, message, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, err
	}
	return message, nil
}

// Release implements calls.Room.
func (r *Room) Release(ids ...contract.LeaseID) {
	for _, id := range ids {
		r.Stray(id)
	}
}

// Ended implements calls.Room.
func (r *Room) Ended(ids []contract.LeaseID) []contract.LeaseID { return r.Over(ids, calls.MaxEnded) }
