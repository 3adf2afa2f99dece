package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core/contract"
)

// What an answer says.
const (
	answerAsk  = 1 // ask by gRPC
	answerDone = 2
)

// An answer consists of a head (its kind in one byte, three zeros, and the number of items in four), a
// status for each item, and then, in their order, what some statuses have: the length and the message of a
// lease, or a fence.
const (
	answerHead = 8
	fenceSize  = 32
)

// writer writes an answer.
type writer struct {
	b     []byte
	items int
}

// begin writes the head of an answer with n items, all of which are Ask so far.
func (w *writer) begin(b []byte, n int) {
	w.b = binary.LittleEndian.AppendUint32(append(b[:0], answerDone, 0, 0, 0), uint32(n))
	for range n {
		w.b = append(w.b, byte(Ask))
	}
	w.items = n
}

func (w *writer) status(i int, s Status) { w.b[answerHead+i] = byte(s) }

// lease writes the lease of item i, or reports false if there is no room for it, or no way to say it.
func (w *writer) lease(i int, c Codec, l *contract.Lease) bool {
	at := len(w.b)
	b, err := c.Append(append(w.b, 0, 0, 0, 0), l)
	if err != nil || len(b) > MaxAnswer {
		return false
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	w.b = b
	w.status(i, Changed)
	return true
}

// fence writes the fence of item i, or reports false if there is no room for it.
func (w *writer) fence(i int, f contract.CUDAWord) bool {
	if len(w.b)+fenceSize > MaxAnswer {
		return false
	}
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(f.Page))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(f.Size))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(f.Offset))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(f.Value))
	w.status(i, Fenced)
	return true
}

// reader reads an answer, from a side that is not trusted.
type reader struct {
	statuses, rest []byte
}

// open gives a reader of an answer about n items; false says that it has none.
func open(answer []byte, n int) (r reader, ok bool, err error) {
	switch {
	case len(answer) < answerHead || answer[1] != 0 || answer[2] != 0 || answer[3] != 0:
		return r, false, fmt.Errorf("an answer of %d bytes", len(answer))
	case answer[0] == answerAsk:
		return r, false, nil
	case answer[0] != answerDone || int(binary.LittleEndian.Uint32(answer[4:])) != n || len(answer)-answerHead < n:
		return r, false, fmt.Errorf("an answer of kind %d with %d bytes about %d items", answer[0], len(answer), n)
	}
	return reader{answer[answerHead:][:n], answer[answerHead+n:]}, true, nil
}

// lease gives the message of the next lease.
func (r *reader) lease() ([]byte, error) {
	if len(r.rest) < 4 {
		return nil, errors.New("an answer that ends too early")
	}
	n := int(binary.LittleEndian.Uint32(r.rest))
	if n < 0 || n > len(r.rest)-4 {
		return nil, fmt.Errorf("a lease of %d bytes", n)
	}
	message := r.rest[4 : 4+n]
	r.rest = r.rest[4+n:]
	return message, nil
}

// fence gives the next fence.
func (r *reader) fence() (contract.CUDAWord, error) {
	if len(r.rest) < fenceSize {
		return contract.CUDAWord{}, errors.New("an answer that ends too early")
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(r.rest[at:]) }
	w := contract.CUDAWord{
		Page: contract.SegmentID(u64(0)), Size: int64(u64(8)), Offset: int64(u64(16)), Value: uint32(u64(24)),
	}
	r.rest = r.rest[fenceSize:]
	if w.Offset < 0 || w.Offset%4 != 0 || w.Size < 4 || w.Offset > w.Size-4 {
		return contract.CUDAWord{}, fmt.Errorf("a fence's word at byte %d of %d", w.Offset, w.Size)
	}
	return w, nil
}

// granted gives the IDs of the leases in an answer that is not wanted.
func granted(answer []byte, c Codec) (ids []contract.LeaseID) {
	if len(answer) < answerHead {
		return nil
	}
	r, ok, err := open(answer, int(binary.LittleEndian.Uint32(answer[4:])))
	if err != nil || !ok {
		return nil
	}
	for _, s := range r.statuses {
		switch Status(s) {
		case Changed:
			message, err := r.lease()
			if err != nil {
				return ids
			}
			if id := c.ID(message); id != 0 {
				ids = append(ids, id)
			}
		case Fenced:
			if _, err := r.fence(); err != nil {
				return ids
			}
		default:
		}
	}
	return ids
}

// look reads the result of item i, of which a lease answers req.
func (r *reader) look(i int, c Codec, req contract.Request, only bool) (l Look, err error) {
	l.Status = Status(r.statuses[i])
	switch l.Status {
	case Ask, Unchanged:
	case Changed:
		if only {
			break
		}
		var message []byte
		if message, err = r.lease(); err != nil {
			break
		}
		var lease contract.Lease
		if lease, err = c.Lease(message, req); err == nil {
			l.Lease = &lease
		}
	case Fenced:
		l.Fence, err = r.fence()
	default:
		err = fmt.Errorf("a status of %d", l.Status)
	}
	return l, err
}
