package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Queue is a stream of the exporter for one hand-over. It waits for the work that an array needs,
// copies the array if it must, and then reaches a fence. One goroutine at a time uses a queue, and its
// owner closes it.
type Queue struct {
	state  *contextState
	stream driver.Stream
	event  driver.Event

	slot   *slot      // of its words, once it wrote one
	waits  bool       // the stream may have something to do
	broken bool       // the stream is not to be used again
	last   *FenceWord // that says when it has done all; nil if none does
}

// Close ends the hand-over. The stream still does its work.
func (q *Queue) Close() { q.state.giveBack(q) }

func (q *Queue) destroy() {
	_ = driver.StreamDestroy(q.stream) // or they went with their context
	_ = driver.EventDestroy(q.event)
}

// resting reports whether the stream has no work, or will never do it. The caller holds the state's mu.
func (q *Queue) resting() bool {
	if q.waits && q.last != nil {
		q.waits = !q.last.Reached()
	} else if q.waits {
		err := q.state.in(func() error {
			done, err := driver.StreamQuery(q.stream)
			q.waits = !done
			return err
		})
		if err != nil {
			q.waits, q.broken = false, true
			q.state.giveUp(err)
		}
	}
	return !q.waits
}

// Stream returns the CUstream, for a framework that makes it wait for an array's work.
func (q *Queue) Stream() uintptr {
	q.waits, q.last = true, nil
	return uintptr(q.stream)
}

// in runs f with the queue's context current. After a failure the stream is not used again.
func (q *Queue) in(f func() error) error {
	err := q.state.in(f)
	q.broken = q.broken || err != nil
	return orderError(err)
}

// AfterContext makes the queue wait for all work that its context was given until now, on any stream. It reports
// false if that takes time: drivers before CUDA 12.5 cannot order it, while a graph is captured nothing can, and the
// driver holds only so many events. Then the caller uses [Queue.Synchronize].
func (q *Queue) AfterContext() (ok bool, err error) {
	err = q.afterContext()
	if isUnsupported(err) || q.heldOff(err) {
		return false, nil
	}
	return err == nil, orderError(err)
}

func (q *Queue) afterContext() error {
	if q.state.full() {
		return errFull
	}
	return q.state.in(q.recordContext)
}

// recordContext is called in the context.
func (q *Queue) recordContext() error {
	if err := q.record(); err != nil {
		return err
	}
	return q.awaitEvent(q.event)
}

// record records the event behind all work that the context was given until now.
func (q *Queue) record() error {
	return q.state.whole(func() error { return driver.CtxRecordEvent(q.state.ctx, q.event) })
}

var errFull = errors.New("too many arrays wait for work of the program")

// heldOff reports whether a call has to wait until no graph is captured, or until work is done.
func (q *Queue) heldOff(err error) bool {
	return q.state.captures != nil && isCaptured(err) || errors.Is(err, errFull)
}

func orderError(err error) error {
	if err == nil {
		return nil
	}
	return driver.Explain("order", "", captured(err))
}

// awaitEvent is called in the context. It does not query the event first: a query takes half as long as
// the wait, and an event that was just recorded has never happened yet.
func (q *Queue) awaitEvent(e driver.Event) error {
	q.waits, q.last = true, nil
	return driver.StreamWaitEvent(q.stream, e)
}

// Synchronize waits until no graph is captured, and then for all work of the context, or until ctx ends. Its goroutine is locked to a
// thread most often, as those that run Python are.
func (q *Queue) Synchronize(ctx context.Context) error {
	rest := time.NewTicker(time.Millisecond)
	defer rest.Stop()
	for {
		err := q.mark()
		if err == nil {
			return q.marked(ctx)
		}
		if isUnsupported(err) {
			err = q.finish(ctx)
		}
		if !q.heldOff(err) {
			return orderError(err)
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			if errors.Is(err, errFull) {
				return waitError(ctx)
			}
			e := *captured(err).(*core.Error) //nolint:errcheck,errorlint,forcetypeassert // it is one
			e.Kind = ctx.Err()
			return &e
		}
	}
}

// mark records the queue's event behind all work of its context. The queue's stream has no part in it, so that a GPU with
// nothing to do is not given anything.
func (q *Queue) mark() error {
	if q.state.full() {
		return errFull
	}
	return q.state.in(q.record)
}

// marked waits until the event has happened, or until ctx ends.
func (q *Queue) marked(ctx context.Context) error {
	return waited(ctx, driver.PollLocked(ctx, func() (done bool, err error) {
		err = q.in(func() (err error) { done, err = driver.EventQuery(q.event); return err })
		return done, err
	}))
}

// finish waits for all work of the context, or until ctx ends. The driver cannot be interrupted, so its wait goes on
// in the background after ctx ends.
func (q *Queue) finish(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- q.state.in(func() error { return q.state.whole(driver.CtxSynchronize) }) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return waitError(ctx)
	}
}

// AfterStream makes the queue wait for the work that a stream was given until now. The stream is a
// CUstream, or 1 for the legacy default stream of the queue's context.
func (q *Queue) AfterStream(x *Exporter, stream uintptr) error {
	s := driver.Stream(stream)
	return q.in(func() error {
		at, err := q.stateOfStream(x, s)
		if err != nil {
			return err
		}
		if at == q.state {
			if err := driver.EventRecord(q.event, s); err != nil {
				return err
			}
			return q.awaitEvent(q.event)
		}
		m, err := at.mark(func(e driver.Event) error { return driver.EventRecord(e, s) })
		if err != nil {
			return err
		}
		defer m.Close()
		return q.awaitEvent(m.event)
	})
}

// stateOfStream finds the state of a stream's context. It refuses a stream that is being captured: an
// event recorded there would draw the queue into the capture. It is called in the queue's context.
func (q *Queue) stateOfStream(x *Exporter, s driver.Stream) (*contextState, error) {
	capturing, err := driver.StreamCapturing(s)
	if err == nil && capturing {
		err = &driver.Error{Call: "cuEventRecord", Code: driver.StreamCaptureUnsupported}
	}
	if err != nil || s == driver.LegacyStream || s == driver.ThreadStream {
		return q.state, captured(err)
	}
	ctx, err := driver.StreamCtx(s)
	if err != nil || ctx == q.state.ctx {
		return q.state, err
	}
	return x.stateOf(ctx, q.state.device.Index)
}

// AfterMark makes the queue wait for a mark.
func (q *Queue) AfterMark(m *Mark) error {
	if m.event == 0 {
		return nil
	}
	return q.in(func() error { return q.awaitEvent(m.event) })
}

// AfterQueue makes the queue wait for the work of another queue.
func (q *Queue) AfterQueue(other *Queue) error {
	if other == q {
		return nil
	}
	err := other.in(func() error { return driver.EventRecord(other.event, other.stream) })
	if err != nil {
		return err
	}
	return q.in(func() error { return q.awaitEvent(other.event) })
}

// On reports whether the queue is in the context that owns the memory.
func (q *Queue) On(p gpu.Pointer) bool {
	if p.Context() == 0 {
		return q.state.device.Index == p.Device.Index
	}
	return driver.Context(p.Context()) == q.state.ctx
}

// Done reports whether all work of the queue is done.
func (q *Queue) Done() (done bool, err error) {
	if !q.waits {
		return true, nil
	}
	err = q.in(func() error {
		done, err = driver.StreamQuery(q.stream)
		q.waits = !done
		return err
	})
	return done, err
}

// Fence returns a fence word that the stream writes when all work of the queue is done, or nil if the
// queue has no work. If the device cannot write fence words, Fence returns nil and false, and the
// caller uses [Queue.Wait].
func (q *Queue) Fence() (w *FenceWord, ok bool, err error) {
	if !q.waits {
		return nil, true, nil
	}
	if w, err = q.write(); err != nil {
		return nil, false, err
	}
	return w, w != nil || !q.waits, nil
}

func (q *Queue) write() (w *FenceWord, err error) {
	err = q.in(func() error { w = q.writeWord(); return nil })
	return w, err
}

// writeWord is called in the context. It gives nil if there are no words here: then the CPU will wait.
func (q *Queue) writeWord() *FenceWord {
	p := q.state
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noWords || p.closed {
		return nil
	}
	w, err := p.newWord(q)
	if err == nil {
		err = driver.StreamWriteValue32(q.stream, w.Page.device+uintptr(w.Offset), w.Value)
	}
	if err != nil {
		p.noWords = true
		if w != nil {
			q.slot.last--
		}
		return nil
	}
	q.last = w
	p.expect()
	return w
}

// Wait waits until all work of the queue is done, or until ctx ends.
func (q *Queue) Wait(ctx context.Context) error {
	return waited(ctx, driver.Poll(ctx, q.Done))
}

// waited gives the error of a wait, which ctx may have ended.
func waited(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return waitError(ctx)
	}
	return err
}

func waitError(ctx context.Context) error {
	return &core.Error{
		Op: "order", Kind: ctx.Err(), Err: errors.New("work on the GPU that the array waits for is not done yet"),
	}
}

// isCaptured reports whether a capture of a graph prevents a call.
func isCaptured(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code == driver.StreamCaptureUnsupported
}

// isUnsupported reports whether the driver lacks a function.
func isUnsupported(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code == driver.NotSupported
}

// captured tells the user what to do about a capture that prevents the call.
func captured(err error) error {
	if !isCaptured(err) {
		return err
	}
	return &core.Error{
		Op: "order", Kind: core.ErrUnavailable,
		Err:    fmt.Errorf("the program captures a graph: %w", err),
		Remedy: `publish the array before the capture begins, or configure sync = "stream" for its framework`,
	}
}
