package handoff

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/board"
)

// BoardSegment is the ID of the board's memory.
const BoardSegment = Segment + 1

// Board is where the producer offers leases: the zero value is no board.
type Board struct {
	Segment core.SegmentID
	Size    int64
}

// Publisher is implemented by producers that offer leases on a board.
type Publisher interface {
	// Publishes hands the board over, when the session is opened, and nil before the board is closed.
	Publishes(p *board.Poster)
}

// AppendOffer writes the lease of an offer behind b, which is empty, for [board.Note.Write]. It reports
// false for a lease that an offer cannot say: hosts take only read-only leases on host memory that is
// ready.
func AppendOffer(b []byte, l *core.Lease) ([]byte, bool) {
	offered := *l
	offered.ID = 0
	b, ok := appendLease(b, &offered)
	return b, ok && offerable(&offered) == nil
}

// offerable says what is wrong with the lease of an offer.
func offerable(l *core.Lease) error {
	switch l.Handle.(type) {
	case nil, core.Segment:
	default:
		return fmt.Errorf("an offer with a handle of type %T", l.Handle)
	}
	if _, ready := l.Fence.(core.Ready); !ready || l.Writable || l.ID != 0 {
		return errors.New("an offer that is writable, not ready or has an ID")
	}
	return nil
}

// offers is the producer's side of a board. The zero value is none.
type offers struct {
	publisher Publisher
	memory    region
	poster    *board.Poster
}

// Offer makes a board, on which the producer offers leases until Close, if it is a [Publisher]. It is called
// at most once, before the ring is announced.
func (s *Server) Offer(producer any) error {
	p, ok := producer.(Publisher)
	if !ok {
		return nil
	}
	memory, err := create("ndbridge-board", board.Size)
	if err != nil {
		return err
	}
	poster, err := board.NewPoster(memory.mapping.Bytes())
	if err != nil {
		return errors.Join(err, memory.close())
	}
	s.offers = offers{publisher: p, memory: memory, poster: poster}
	p.Publishes(poster)
	return nil
}

// board describes the board to the host.
func (o *offers) board() Board {
	if o.poster == nil {
		return Board{}
	}
	return Board{Segment: BoardSegment, Size: board.Size}
}

// close is called once.
func (o *offers) close() error {
	if o.poster == nil {
		return nil
	}
	o.publisher.Publishes(nil)
	o.poster.Close()
	return o.memory.close()
}
