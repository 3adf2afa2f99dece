package export

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

// Queue is a stream of an exporter's own, for one hand-over: it is made to wait for the work that an
// array needs, may copy the array then, and says when it has come that far. It is used by one goroutine
// at a time, and closed by who got it.
type Queue struct {
	place  *place
	stream driver.Stream
	event  driver.Event

	slot   *slot // of its words, once it wrote one
	waits  bool  // the stream may have something to do
	broken bool  // the stream is not to be used again
	last   *Word // that says when it has done all; nil if none does
}

// Close ends the hand-over. What the stream has to do is done nonetheless.
func (q *Queue) Close() { q.place.giveBack(q) }

func (q *Queue) destroy() {
	_ = driver.StreamDestroy(q.stream) // or they went with their context
	_ = driver.EventDestroy(q.event)
}

// resting says whether the stream has nothing to do, or will never do it. The place is locked.
func (q *Queue) resting() bool {
	if q.waits && q.last != nil {
		q.waits = !q.last.reached()
	} else if q.waits {
		err := q.place.in(func() error {
			done, err := driver.StreamQuery(q.stream)
			q.waits = !done
			return err
		})
		if err != nil {
			q.waits, q.broken = false, true
			q.place.giveUp(err)
		}
	}
	return !q.waits
}

// Stream gives the CUstream, for a framework that makes it wait for an array's work.
func (q *Queue) Stream() uintptr {
	q.waits, q.last = true, nil
	return uintptr(q.stream)
}

// in runs f with the queue's context current. A failure may have left anything behind in the stream.
func (q *Queue) in(f func() error) error {
	err := q.place.in(f)
	if err != nil {
		q.broken = true
		return driver.Explain("order", "", captured(err))
	}
	return nil
}

// AfterContext makes the queue wait for all work that its context was given until now, on any stream.
// Drivers before CUDA 12.5 cannot say that: then ok is false, and [Queue.Synchronize] does it.
//
// While a stream of the context is captured into a graph the error wraps [core.ErrUnavailable].
func (q *Queue) AfterContext() (ok bool, err error) {
	err = q.place.in(func() error {
		if err := driver.CtxRecordEvent(q.place.ctx, q.event); err != nil {
			return err
		}
		return q.awaitEvent(q.event)
	})
	if isUnsupported(err) {
		return false, nil
	}
	if err != nil {
		return false, driver.Explain("order", "", captured(err))
	}
	return true, nil
}

// awaitEvent is called in the context. It does not look whether the event has happened: that takes half
// as long as to wait for it, and what was just recorded never has.
func (q *Queue) awaitEvent(e driver.Event) error {
	q.waits, q.last = true, nil
	return driver.StreamWaitEvent(q.stream, e)
}

// Synchronize waits for all work of the context, under ctx. The driver cannot be interrupted, so that a
// wait that was given up goes on by itself.
func (q *Queue) Synchronize(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- q.place.in(driver.CtxSynchronize) }()
	select {
	case err := <-done:
		if err != nil {
			return driver.Explain("order", "", captured(err))
		}
		return nil
	case <-ctx.Done():
		return waitError(ctx)
	}
}

// AfterStream makes the queue wait for what a stream was given until now: a CUstream, or 1 for the
// legacy default stream of the queue's context.
func (q *Queue) AfterStream(x *Exporter, stream uintptr) error {
	s := driver.Stream(stream)
	return q.in(func() error {
		at, err := q.placeOf(x, s)
		if err != nil {
			return err
		}
		if at == q.place {
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

// placeOf finds the context of a stream. It refuses one that is captured: an event that is recorded
// there would draw who waits for it into the capture. It is called in the queue's context.
func (q *Queue) placeOf(x *Exporter, s driver.Stream) (*place, error) {
	capturing, err := driver.StreamCapturing(s)
	if err == nil && capturing {
		err = &driver.Error{Call: "cuEventRecord", Code: driver.StreamCaptureUnsupported}
	}
	if err != nil || s == driver.LegacyStream || s == driver.ThreadStream {
		return q.place, captured(err)
	}
	ctx, err := driver.StreamCtx(s)
	if err != nil || ctx == q.place.ctx {
		return q.place, err
	}
	return x.place(ctx, q.place.device.Index)
}

// AfterMark makes the queue wait for a mark.
func (q *Queue) AfterMark(m *Mark) error {
	if m.event == 0 {
		return nil
	}
	return q.in(func() error { return q.awaitEvent(m.event) })
}

// AfterQueue makes the queue wait for another one.
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

// On reports whether the queue is in the context that the memory belongs to.
func (q *Queue) On(p cuda.Pointer) bool {
	if p.Context() == 0 {
		return q.place.device.Index == p.Device.Index
	}
	return driver.Context(p.Context()) == q.place.ctx
}

// Done says whether all that the queue was given is done.
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

// Fence gives a word that is reached when all that the queue was given is done; nil if it was given
// nothing. Where the device cannot write words it gives nil and false: then [Queue.Wait] does it.
func (q *Queue) Fence() (w *Word, ok bool, err error) {
	if !q.waits {
		return nil, true, nil
	}
	if w, err = q.write(); err != nil {
		return nil, false, err
	}
	return w, w != nil || !q.waits, nil
}

func (q *Queue) write() (w *Word, err error) {
	p := q.place
	p.mu.Lock()
	defer p.mu.Unlock()
	err = q.in(func() error {
		if p.noWords || p.closed {
			return nil
		}
		var err error
		if w, err = p.newWord(q); err == nil {
			err = driver.StreamWriteValue32(q.stream, w.Page.device+uintptr(w.Offset), w.Value)
		}
		if err != nil { // no words here, then
			p.noWords = true
			if w != nil {
				q.slot.last--
				w = nil
			}
			return nil // the CPU will wait
		}
		q.last = w
		p.expect()
		return nil
	})
	return w, err
}

// How often a stream is looked at while the CPU waits for it.
const (
	firstLook = 20 * time.Microsecond
	lastLook  = time.Millisecond
)

// Wait waits until all that the queue was given is done, under ctx.
func (q *Queue) Wait(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := firstLook; q.waits; pause = min(2*pause, lastLook) {
		if done, err := q.Done(); done || err != nil {
			return err
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return waitError(ctx)
		}
	}
	return nil
}

func waitError(ctx context.Context) error {
	return &core.Error{
		Op: "order", Kind: ctx.Err(), Err: errors.New("work on the GPU that the array waits for is not done yet"),
	}
}

// isUnsupported says whether the driver lacks a function.
func isUnsupported(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code == driver.NotSupported
}

// captured says what to do about a capture that is in the way.
func captured(err error) error {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || e.Code != driver.StreamCaptureUnsupported {
		return err
	}
	return &core.Error{
		Op: "order", Kind: core.ErrUnavailable,
		Err:    cmp.Or(error(e), err),
		Remedy: `publish the array before the capture begins, or configure sync = "stream" for its framework`,
	}
}
