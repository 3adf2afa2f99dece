package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

const (
	usualRows    = 32 // of a batch
	usualBatches = 2  // one is filled while the other runs
)

// BatchOptions says how calls become batches. The zero values of Max, Wait and Batches are useful.
type BatchOptions struct {
	DType core.DType // of a row
	Shape []int      // of a row

	Max     int           // rows of a batch; 0: 32
	Wait    time.Duration // for how long a batch waits for more rows after its first is filled; 0: it has those that are there
	Batches int           // that are filled or run at once; further callers wait; 0: 2
	Kw      Kw            // keyword arguments of each call
}

// Batch makes one call of many: each caller fills a row of an array in the host's memory, the function is called
// with the rows that came together, and each caller gets its row of the result. Neither rows nor results are
// copied. All methods are safe for concurrent use. The caller closes it.
//
// Callers get rows in the order in which they came. A batch is called when all its rows are given out, or when
// [BatchOptions.Wait] is over, and those who fill one of its rows are done. A caller that gives up holds up nobody, and
// the function sees only rows that were filled: what is to its right moves to its place.
type Batch struct {
	f       *Func
	options BatchOptions
	pool    *Pool
	rowSize int
	trays   sync.WaitGroup // grows while closed is false

	mu      sync.Mutex
	closed  bool
	open    int    // trays that are filled or run
	filling *tray  // whose rows are given out; nil: none
	queue   []*row // callers that wait for a row
	stats   BatchStats
}

// BatchStats counts what a [Batch] has done. Calls/Batches is the usual size of a batch, Queued/Calls how long a
// caller usually waits for the function to begin, and Ran/Batches how long that usually takes.
type BatchStats struct {
	Calls   uint64        // rows that the function was called with
	Batches uint64        // calls of the function
	Failed  uint64        // batches whose callers got an error
	GaveUp  uint64        // callers that got nothing: their context ended, or they did not fill the row
	Waiting int           // callers that wait for a row now
	Queued  time.Duration // from the beginning of Batch.Call to the call of the function, the sum over Calls
	Ran     time.Duration // of the function, the sum over Batches
}

// Batch gives what makes batches of calls of f, whose first argument are the rows: an array of o.Shape with one more axis in
// front. The error wraps core.ErrConfig, core.ErrDType, core.ErrLayout, or is that of [Session.Pool].
func (f *Func) Batch(o BatchOptions) (*Batch, error) {
	const op = "batch"
	if o.Max < 0 || o.Wait < 0 || o.Batches < 0 {
		return nil, f.session.wrap(op, f.name, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("none of Max %d, Wait %v and Batches %d can be negative", o.Max, o.Wait, o.Batches),
		})
	}
	if o.Max == 0 {
		o.Max = usualRows
	}
	if o.Batches == 0 {
		o.Batches = usualBatches
	}
	pool, err := f.session.Pool(o.DType, slices.Insert(slices.Clone(o.Shape), 0, o.Max)...)
	if err != nil {
		return nil, err
	}
	if _, err := pool.layout.Select(0, o.Max-1); err != nil { // where a row would begin within a byte
		return nil, errors.Join(f.session.wrap(op, f.name, err), pool.Close())
	}
	return &Batch{f: f, options: o, pool: pool, rowSize: int(pool.layout.NBytes()) / o.Max}, nil
}

// Call has fill write one row of a batch, and gives that row of what the function returns. The caller closes the
// result; the program keeps the memory of a batch's result until all its callers have done so.
//
// Fill writes all of the row, which shows what was written there before, and keeps neither it nor slices of it. The
// others in the batch wait for fill: what takes long is done before Call. An error of fill is returned as it is.
//
// Of an array that the function returns, a caller gets its element of the first axis, and of a list its item. A tuple, a
// dict, a named tuple or a dataclass comes with the caller's share of each value, and None as None. If an axis or
// a list has another length than the batch, the error wraps core.ErrUnsupported and says both.
//
// All callers in a batch get the error of the one call; see [Func.Call] for errors. When ctx ends, Call returns with its
// error: a batch that has not begun goes without the row, and one that runs goes on for the others, or is interrupted if
// all have gone. After Close the error wraps core.ErrClosed.
func (b *Batch) Call(ctx context.Context, fill func(row *core.View) error) (Result, error) {
	r, err := b.row(ctx)
	if err != nil {
		return Result{}, b.f.session.wrap("call", b.f.name, err)
	}
	if err := b.fill(r, fill); err != nil { //nolint:contextcheck // the batch outlives the contexts of its callers
		return Result{}, err
	}
	select {
	case out := <-r.outcome:
		return out.result, out.err
	case <-ctx.Done():
	}
	if why := b.leave(r); why != "" {
		return Result{}, b.ended(ctx, why)
	}
	out := <-r.outcome // it had come
	return out.result, out.err
}

// Stats says what was done until now. It takes next to no time.
func (b *Batch) Stats() BatchStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Waiting = len(b.queue)
	return b.stats
}

// Close lets the calls that have a row come to their end, and waits for them. Those that wait for one fail with
// core.ErrClosed, and so do later ones. It is idempotent.
func (b *Batch) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, r := range b.queue {
		r.given <- &core.Error{Kind: core.ErrClosed}
	}
	b.queue = nil
	if b.filling != nil {
		b.filling.seal()
	}
	b.mu.Unlock()
	b.trays.Wait()
	return b.pool.Close()
}

// row waits for a row.
func (b *Batch) row(ctx context.Context) (*row, error) {
	const before = "it had no row of a batch yet"
	if ctx.Err() != nil {
		return nil, b.ended(ctx, before)
	}
	r := &row{ctx: ctx, begun: time.Now(), given: make(chan error, 1), outcome: make(chan outcome, 1)}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, &core.Error{Kind: core.ErrClosed}
	}
	b.queue = append(b.queue, r)
	b.give()
	b.mu.Unlock()
	select {
	case err := <-r.given:
		return r, err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.GaveUp++
	if i := slices.Index(b.queue, r); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	} else if err := <-r.given; err == nil {
		_ = r.view.Close() // of memory that goes back to the pool with the tray
		r.tray.drop(r)
	}
	return nil, b.ended(ctx, before)
}

// give gives rows to those who wait. The lock is held.
func (b *Batch) give() {
	for len(b.queue) > 0 {
		if b.filling == nil && b.open == b.options.Batches {
			return
		}
		r, err := b.queue[0], error(nil)
		b.queue = slices.Delete(b.queue, 0, 1)
		if b.filling == nil {
			b.filling, err = b.newTray()
		}
		if err == nil {
			err = b.filling.take(r)
		}
		r.given <- err
	}
}

// fill has a row filled.
func (b *Batch) fill(r *row, fill func(row *core.View) error) error {
	filled := false
	defer func() {
		if !filled { // also by a panic
			_ = r.view.Close() // as in row
			b.mu.Lock()
			defer b.mu.Unlock()
			b.stats.GaveUp++
			r.tray.drop(r)
		}
	}()
	if err := fill(r.view); err != nil {
		return err
	}
	if err := r.view.Close(); err != nil {
		return b.f.session.wrap("call", b.f.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if filled = r.ctx.Err() == nil; !filled {
		return b.ended(r.ctx, "the row was not filled yet")
	}
	r.tray.fill(r)
	return nil
}

// leave is called when nobody waits any more for what becomes of a row. It says what that is, or nothing: then it is known.
func (b *Batch) leave(r *row) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := r.tray
	switch r.state {
	case rowFilled:
		t.drop(r)
		why = "the function has not begun, and gets no such row"
	case rowRunning:
		r.state = rowGone
		if t.wanted--; t.wanted == 0 {
			t.cancel()
			why = "the function is interrupted, for nobody waits for its batch any more"
		} else {
			why = "the function goes on for the others in the batch"
		}
	default:
		return ""
	}
	b.stats.GaveUp++
	return why
}

// ended is the error of a caller whose context has ended.
func (b *Batch) ended(ctx context.Context, what string) error {
	e := &core.Error{Kind: ctx.Err(), Err: errors.New(what)}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		e.Err = fmt.Errorf("%w: %s", cause, what)
	}
	return b.f.session.wrap("call", b.f.name, e)
}
