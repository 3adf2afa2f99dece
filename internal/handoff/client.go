package handoff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// ErrAsk says that the mailbox does not have the answer: it is to be asked for by gRPC.
var ErrAsk = errors.New("ask by gRPC")

// Client asks through a mailbox. All methods are safe for concurrent use.
type Client struct {
	Offers *offers.Reader // nil: the producer offers nothing

	mailbox  *MailboxClient
	mapping  *shm.Mapping
	codec    Codec
	stray    func(contract.LeaseID)
	requests [][]byte // the memory of requests, one for each slot; whoever has the slot has it

	mapped sync.RWMutex // read-held while the memory is in use
	closed bool         // guarded by it
	forks  uint64       // when it was closed
}

// NewClient maps the memory that a producer has announced, whose descriptor stays the caller's. The error
// says that the producer lied about it. stray is called with leases that were granted too late, when
// nobody waited for them any more.
func NewClient(file *os.File, m Memory, codec Codec, spin time.Duration, stray func(contract.LeaseID)) (*Client, error) {
	return newClient(file, m, codec, spin, callLimit, stray)
}

func newClient(
	file *os.File, m Memory, codec Codec, spin, limit time.Duration, stray func(contract.LeaseID),
) (*Client, error) {
	if m.Slots < 1 || m.Slots > MaxSlots || m.Size != m.wants() {
		return nil, fmt.Errorf("a mailbox of %d slots in %d bytes", m.Slots, m.Size)
	}
	mapping, err := shm.MapSealed(file, m.Size)
	if err != nil {
		return nil, err
	}
	c := &Client{mapping: mapping, codec: codec, stray: stray, requests: make([][]byte, m.Slots)}
	if c.mailbox, err = NewMailboxClient(mapping.Bytes()[m.offset():], spin, limit, c.abandoned); err == nil && m.Offers {
		c.Offers, err = offers.NewReader(mapping.Bytes())
	}
	if err != nil {
		return nil, errors.Join(err, mapping.Close())
	}
	return c, nil
}

// Close ends the calls that are under way, and waits for those who use the offers. It is idempotent.
func (c *Client) Close() error {
	c.mailbox.Close()
	c.mapped.Lock()
	defer c.mapped.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.Offers != nil {
		c.forks = c.Offers.Forks()
	}
	return c.mapping.Close()
}

// Forks is the Forks of the offers, and after Close what it was then; 0 if there are no offers.
func (c *Client) Forks() uint64 {
	c.mapped.RLock()
	defer c.mapped.RUnlock()
	if c.closed || c.Offers == nil {
		return c.forks
	}
	return c.Offers.Forks()
}

// Use keeps the memory, that of the offers included, mapped until Unuse. It reports false after Close.
func (c *Client) Use() bool {
	c.mapped.RLock()
	if c.closed {
		c.mapped.RUnlock()
		return false
	}
	return true
}

// Unuse ends a Use.
func (c *Client) Unuse() { c.mapped.RUnlock() }

// Described reads the text of a description in the table: a lease but for its ID.
func (c *Client) Described(text []byte, req contract.Request) (contract.Lease, error) {
	return c.codec.Lease(text, req)
}

// Leases asks for a lease for each name. It does not wait for a name that is not there yet, nor for a busy
// producer. There is a result for each name: [Changed] with the lease, or [Ask].
//
// The error is [ErrAsk] if the mailbox has no answer at all, that of ctx, or what the producer did wrong;
// after any nothing stays leased.
func (c *Client) Leases(ctx context.Context, names []string, req contract.Request, results []Look) error {
	const most = 64 // names in a request, so that there is room for their leases
	limit := c.limitOf(len(names))
	for begin := 0; begin < len(names); begin += most {
		end := min(begin+most, len(names))
		err := c.exchange(ctx, limit, func(b []byte) []byte {
			b = head(b, opLease, req, false, end-begin)
			for _, name := range names[begin:end] {
				b = appendName(b, name)
			}
			return b
		}, func(answer []byte) error {
			return c.read(answer, results[begin:end], false, func(int) contract.Request { return req })
		})
		if err != nil {
			c.giveBack(results[:begin])
			return err
		}
	}
	return nil
}

// limitOf gives how long a request for so many names or leases waits for its answer; 0: as long as its context. The answers of several are of one moment, which
// those that gRPC gives one by one are not.
func (c *Client) limitOf(questions int) time.Duration {
	if questions > 1 {
		return 0
	}
	return c.mailbox.limit
}

// Refresh looks again at what leases stand on: see [contract.Refresher]. requests has what each was granted for.
// There is a result for each lease. If only is true nothing is copied or granted. A call makes no garbage,
// unless a result is Changed.
//
// If copies is true, leases among them are on copies, which the producer makes again in the same memory. Then Refresh waits for the
// producer as long as ctx lets it: who asked by gRPC after a while would read the copy while the producer makes it once more, for the
// request before.
//
// The errors are those of Leases.
func (c *Client) Refresh(
	ctx context.Context, ids []contract.LeaseID, requests []contract.Request, only, copies bool, results []Look,
) error {
	limit := c.limitOf(len(ids))
	if only {
		limit = c.mailbox.limit
	} else if copies {
		limit = 0
	}
	for begin := 0; begin < len(ids); begin += MaxIDs {
		end := min(begin+MaxIDs, len(ids))
		err := c.exchange(ctx, limit, func(b []byte) []byte {
			return appendIDs(head(b, opRefresh, contract.Request{}, only, end-begin), ids[begin:end])
		}, func(answer []byte) error {
			return c.read(answer, results[begin:end], only, func(i int) contract.Request { return requests[begin+i] })
		})
		if err != nil {
			c.giveBack(results[:begin])
			return err
		}
	}
	return nil
}

// Release gives leases back, and returns when that is done. The error is [ErrAsk] or that of ctx; some may
// have been given back then.
func (c *Client) Release(ctx context.Context, ids ...contract.LeaseID) error {
	for len(ids) > 0 {
		n := min(len(ids), MaxIDs)
		err := c.exchange(ctx, c.mailbox.limit, func(b []byte) []byte {
			return appendIDs(head(b, opRelease, contract.Request{}, false, n), ids[:n])
		}, func(answer []byte) error {
			if _, ok, err := open(answer, 0); err != nil || !ok {
				return ErrAsk
			}
			return nil
		})
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// exchange sends the request that build appends to an empty slice, and has the answer read, for which it waits as long as limit, if
// that is not 0.
func (c *Client) exchange(
	ctx context.Context, limit time.Duration, build func([]byte) []byte, read func(answer []byte) error,
) error {
	if !c.Use() {
		return ErrAsk
	}
	defer c.Unuse()
	slot, err := c.mailbox.Acquire(ctx)
	if err != nil {
		return failed(err)
	}
	request := build(c.requests[slot.Index][:0])
	c.requests[slot.Index] = request
	if len(request) > MaxRequest {
		slot.Release()
		return ErrAsk
	}
	answer, err := slot.call(ctx, request, limit)
	if err != nil {
		return failed(err)
	}
	err = read(answer)
	slot.Release()
	return err
}

// read takes the results out of an answer. If one cannot be read, there is none, and the leases in the answer are
// given back.
func (c *Client) read(answer []byte, results []Look, only bool, req func(i int) contract.Request) error {
	r, ok, err := open(answer, len(results))
	if err != nil {
		return err
	}
	if !ok {
		return ErrAsk
	}
	for i := range results {
		if results[i], err = r.look(i, c.codec, req(i), only); err != nil {
			clear(results)
			if !only {
				c.abandoned(answer)
			}
			return err
		}
	}
	return nil
}

// giveBack ends the leases among the results of a call that fails, so that nobody takes them for granted.
func (c *Client) giveBack(results []Look) {
	for i := range results {
		if l := &results[i]; l.Lease != nil {
			c.stray(l.Lease.ID)
			*l = Look{}
		}
	}
}

// failed says what an error of the mailbox means.
func failed(err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrSlow) {
		return ErrAsk
	}
	return err
}

// abandoned takes an answer that nobody wants, and gives the leases in it back.
func (c *Client) abandoned(answer []byte) {
	for _, id := range granted(answer, c.codec) {
		c.stray(id)
	}
}
