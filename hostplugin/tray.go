package hostplugin

import (
	"context"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// tray is one batch: an array whose rows are filled, and then are an argument. All that changes is guarded by the lock of
// its Batch.
type tray struct {
	*Batch
	view    *core.View
	rows    []*row // by their number; nil: nobody has it
	sealed  bool   // no more rows are given out
	timer   *time.Timer
	full    chan struct{} // closed when the tray is sealed
	changed chan struct{} // has room for one: a row was filled or dropped after the tray was sealed
	wanted  int           // callers that wait for the running function
	cancel  context.CancelFunc
}

// row is a caller.
type row struct {
	ctx     context.Context //nolint:containedctx // of the one call
	begun   time.Time
	given   chan error // has room for one: there is a row now, or will be none
	outcome chan outcome

	// Since it was given.
	tray   *tray
	number int
	view   *core.View
	state  rowState
}

type outcome struct {
	result Result
	err    error
}

// rowState is how far a row has come.
type rowState int

const (
	rowGiven   rowState = iota // the caller writes
	rowFilled                  // the caller waits
	rowRunning                 // the function has it
	rowGone                    // nobody waits for it, or it has its outcome
)

// newTray makes a tray. The lock is held.
func (b *Batch) newTray() (*tray, error) {
	v, err := b.pool.Get()
	if err != nil {
		return nil, err
	}
	b.open++
	b.trays.Add(1)
	return &tray{Batch: b, view: v, full: make(chan struct{}), changed: make(chan struct{}, 1)}, nil
}

// take gives a row out: the first that nobody has.
func (t *tray) take(r *row) (err error) {
	n := slices.Index(t.rows, nil)
	if n < 0 {
		n = len(t.rows)
	}
	if r.view, err = t.view.Select(0, n); err != nil {
		return err // the session is closed
	}
	if n == len(t.rows) {
		t.rows = append(t.rows, nil)
	}
	t.rows[n], r.tray, r.number = r, t, n
	if len(t.rows) == t.options.Max && !slices.Contains(t.rows, nil) {
		t.seal()
	}
	return nil
}

// fill notes that a row is filled.
func (t *tray) fill(r *row) {
	r.state = rowFilled
	switch {
	case t.sealed:
		t.change()
	case t.options.Wait == 0:
		t.seal()
		t.give()
	case t.timer == nil:
		t.timer = time.NewTimer(t.options.Wait)
		go t.wait(t.timer)
	}
}

// wait seals the tray when its time is over, or the session is, which nobody need wait for.
func (t *tray) wait(timer *time.Timer) {
	select {
	case <-timer.C:
	case <-t.f.session.gone:
	case <-t.full:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seal()
	t.give()
}

// drop gives a row back. The caller does not write there any more.
func (t *tray) drop(r *row) {
	r.state = rowGone
	if t.rows[r.number] != r {
		return // the batch went without it
	}
	t.rows[r.number] = nil
	if t.sealed {
		t.change()
	} else {
		t.give()
	}
}

func (t *tray) change() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// seal lets the batch be called, if that was not done before.
func (t *tray) seal() {
	if t.sealed {
		return
	}
	t.sealed, t.filling = true, nil
	close(t.full)
	if t.timer != nil {
		t.timer.Stop()
	}
	go t.run()
}

// run calls the function, when all rows are filled.
func (t *tray) run() {
	defer t.trays.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rows, writes := t.settle(cancel)
	if len(rows) > 0 {
		results, err := t.call(ctx, rows, writes)
		t.answer(rows, results, t.f.session.wrap("call", t.f.name, err))
	}
	_ = t.view.Close() // the pool has the memory again, or unmaps it
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.give()
}

// settle waits for those who write to a row and whose context has not ended, and gives the rows that are filled. writes
// says that there are others who write.
func (t *tray) settle(cancel context.CancelFunc) (filled []*row, writes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		i := slices.IndexFunc(t.rows, func(r *row) bool { return r != nil && r.state == rowGiven && r.ctx.Err() == nil })
		if i < 0 {
			break
		}
		done := t.rows[i].ctx.Done()
		t.mu.Unlock()
		select {
		case <-t.changed:
		case <-done:
		}
		t.mu.Lock()
	}
	for _, r := range t.rows {
		switch {
		case r == nil:
		case r.state == rowFilled:
			r.state = rowRunning
			filled = append(filled, r)
		default:
			writes = true
		}
	}
	t.wanted, t.cancel = len(filled), cancel
	return filled, writes
}

// call calls the function with the rows, and divides the result.
func (t *tray) call(ctx context.Context, rows []*row, writes bool) ([]Result, error) {
	if err := t.gather(rows, writes); err != nil {
		return nil, err
	}
	some, err := t.view.Sub(0, 0, len(rows))
	if err != nil {
		return nil, err
	}
	defer some.Close() //nolint:errcheck // the tray's view is open
	begin := time.Now()
	t.mu.Lock()
	t.stats.Batches++
	t.stats.Calls += uint64(len(rows))
	for _, r := range rows {
		t.stats.Queued += begin.Sub(r.begun)
	}
	t.mu.Unlock()
	result, err := t.f.Call(ctx, some, t.options.Kw)
	t.mu.Lock()
	t.stats.Ran += time.Since(begin)
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return result.split(len(rows))
}

// gather moves the rows together where callers have given up. One whose context has ended may still write to its row:
// then they move to another array.
func (t *tray) gather(rows []*row, writes bool) error {
	if rows[len(rows)-1].number == len(rows)-1 {
		return nil
	}
	from := t.view
	if writes {
		fresh, err := t.pool.Get()
		if err != nil {
			return err
		}
		t.view = fresh
		defer from.Close() //nolint:errcheck // the memory is the pool's
	}
	m, _, release, err := from.Acquire()
	if err != nil {
		return err
	}
	defer release()
	old, size := m.Bytes(), t.rowSize
	if m, _, release, err = t.view.Acquire(); err != nil {
		return err
	}
	defer release()
	for i, r := range rows {
		copy(m.Bytes()[i*size:][:size], old[r.number*size:])
	}
	return nil
}

// answer gives each caller its own result, or the error of all.
func (t *tray) answer(rows []*row, results []Result, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.stats.Failed++
		results = make([]Result, len(rows))
	}
	for i, r := range rows {
		if r.state == rowRunning {
			r.state = rowGone
			r.outcome <- outcome{results[i], err}
		} else {
			_ = results[i].Close() // nobody waits for it
		}
	}
}
