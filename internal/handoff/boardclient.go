package handoff

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// The ID of a lease that was taken from a board is the host's own, so that it is that of no other lease:
// this bit, which no producer's ID has, a number that does not come again, and the cell.
const (
	boardLease core.LeaseID = 1 << 63
	cellMask                = 1<<board.CellBits - 1
)

// OnBoard reports whether an ID is that of a lease that was taken from a board.
func OnBoard(id core.LeaseID) bool { return id&boardLease != 0 }

// BoardClient takes leases from a board. All methods are safe for concurrent use, and wait for nothing.
type BoardClient struct {
	reader  *board.Reader
	mapping *shm.Mapping
	texts   sync.Pool
	last    atomic.Uint64 // number of the last lease
	users   atomic.Int64  // calls and leases that need the mapping; closedUsers more after Close
	close   sync.Once
}

const closedUsers = math.MinInt64 / 2

// offer is what a source has found on the board, checked.
type offer struct {
	board.Offer
	lease core.Lease
}

// NewBoardClient maps the board that a producer has announced, whose descriptor stays the caller's. The
// error says that the producer lied about it.
func NewBoardClient(file *os.File, b Board) (*BoardClient, error) {
	if b.Size != board.Size {
		return nil, fmt.Errorf("a board of %d bytes", b.Size)
	}
	mapping, err := receive(file, "board", b.Size)
	if err != nil {
		return nil, err
	}
	reader, err := board.NewReader(mapping.Bytes())
	if err != nil {
		return nil, errors.Join(err, mapping.Close())
	}
	return &BoardClient{
		reader: reader, mapping: mapping, texts: sync.Pool{New: func() any { return new([board.MaxText]byte) }},
	}, nil
}

// Close lets no more leases be taken. The memory is unmapped when the last has been given back.
func (b *BoardClient) Close() {
	b.close.Do(func() {
		if b.users.Add(closedUsers) == closedUsers {
			_ = b.mapping.Close() // fails only if the memory was not mapped
		}
	})
}

// enter keeps the memory mapped until leave, or reports false after Close.
func (b *BoardClient) enter() bool {
	if b.users.Add(1) > 0 {
		return true
	}
	b.leave()
	return false
}

func (b *BoardClient) leave() {
	if b.users.Add(-1) == closedUsers {
		_ = b.mapping.Close() // fails only if the memory was not mapped
	}
}

// Lease takes a lease on what is offered under a source's name: read-only, and not a copy. Without one,
// ok is false, and the ring is to be asked. An error is what the producer did wrong.
func (b *BoardClient) Lease(s *Source, req core.Request) (g Grant, ok bool, err error) {
	if req.Writable || !b.enter() {
		return Grant{}, false, nil
	}
	known := s.offer.Load()
	if known == nil && s.absent.Load() == b.reader.Changes()+1 {
		b.leave()
		return Grant{}, false, nil
	}
	if known == nil || !b.reader.Take(&known.Offer) {
		if known, err = b.find(s, known); known == nil {
			b.leave()
			return Grant{}, false, err
		}
	}
	id := boardLease | core.LeaseID(b.last.Add(1)<<board.CellBits)&^boardLease | core.LeaseID(known.Cell)
	return Grant{id, known.lease.Fence, &known.lease}, true, nil
}

// find looks for a source's name, beginning where it was, and takes a lease; nil if it has none.
func (b *BoardClient) find(s *Source, before *offer) (*offer, error) {
	text := b.texts.Get().(*[board.MaxText]byte) //nolint:errcheck // it holds nothing else
	defer b.texts.Put(text)
	found := new(offer)
	if before != nil {
		found.Offer = before.Offer
	}
	const attempts = 8 // each ends because the name has gone to something else meanwhile
	for range attempts {
		changes := b.reader.Changes()
		ok, sure := b.reader.Find(s.name, &found.Offer, text[:])
		if !ok {
			if sure {
				s.offer.Store(nil)
				s.absent.Store(changes + 1)
			}
			return nil, nil //nolint:nilnil // see above
		}
		if b.reader.Stale(&found.Offer) {
			return nil, nil //nolint:nilnil // see above
		}
		if !b.reader.Take(&found.Offer) {
			continue
		}
		var err error
		if found.lease, err = leaseOf(found.Body); err != nil {
			b.reader.Release(found.Cell) // if it was the last, the ticket of who lies is not worth a release
			return nil, err
		}
		found.Body = nil // the memory goes back
		s.offer.Store(found)
		return found, nil
	}
	return nil, nil //nolint:nilnil // see above
}

// leaseOf reads the body of an offer, which comes from a side that is not trusted.
func leaseOf(body []byte) (core.Lease, error) {
	kind, err := kindOf(body)
	if err != nil {
		return core.Lease{}, err
	}
	if kind != answerLease {
		return core.Lease{}, fmt.Errorf("an offer of kind %d", kind)
	}
	fence, err := fenceOf(body)
	if err != nil {
		return core.Lease{}, err
	}
	l, err := describe(body[answerDescription:])
	if err != nil {
		return core.Lease{}, err
	}
	l.ID, l.Fence = leaseIDOf(body), fence
	if err := offerable(&l); err != nil {
		return core.Lease{}, err
	}
	return l, l.Check(core.Request{Copy: core.CopyNever})
}

// Release gives back a lease that Lease gave. If it was the last on what is not offered any more, the
// producer is to be told so, by the release of the lease that comes back.
func (b *BoardClient) Release(id core.LeaseID) (offered core.LeaseID, last bool) {
	ticket, last := b.reader.Release(uint32(id & cellMask))
	b.leave()
	return core.LeaseID(ticket), last
}
