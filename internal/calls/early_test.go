package calls

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core/contract"
)

// shownLease is what the answers of resting are on.
const shownLease = 88

// resting answers as echo does, with a lease, and its answers wait for rest.
type resting struct {
	*echo
	rest func() error
}

func (r *resting) Answer(request *Request, a *Answer) error {
	a.Leases = append(a.Leases, contract.Lease{ID: shownLease})
	a.Rest = r.rest
	return r.echo.Answer(request, a)
}

// restingWorld is a world whose answers wait for rest.
func restingWorld(t *testing.T, rest func() error) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.wrap = func(e *echo) Worker { return &resting{e, rest} }
	return w
}

// early calls, and is shown the answer while it rests.
func (w *world) early(ctx context.Context, text string, shown func(a Answer)) (a Answer, err error) {
	w.asked.Add(1)
	r := &Request{Op: OpCall, Target: 4, Values: []byte(text), Early: shown, Over: func() { w.over.Add(1) }}
	err = w.client.Call(ctx, r, &a)
	return a, err
}

func rests(a *Answer, text string) bool {
	return a.Kind == Done && a.Target == 5 && string(a.Values) == text && len(a.Leases) == 1 && a.Leases[0].ID == shownLease
}

// TestAnswerThatRests: it is shown, and the call does not return before it holds.
func TestAnswerThatRests(t *testing.T) {
	t.Parallel()
	proceed, rested := make(chan struct{}), new(atomic.Int64)
	w := restingWorld(t, func() error { <-proceed; rested.Add(1); return nil })
	for i := range 3 {
		a, err := w.early(t.Context(), "x", func(a Answer) {
			if !rests(&a, "x") {
				t.Errorf("%+v was shown", a)
			}
			proceed <- struct{}{} // without it the call never ends
		})
		if err != nil || !rests(&a, "x") || rested.Load() != int64(i)+1 {
			t.Errorf("the answer is %+v, %v, and has rested %d times", a, err, rested.Load())
		}
	}
	close(proceed)
	if a, err := w.call(t.Context(), "x"); err != nil || !rests(&a, "x") || rested.Load() != 4 { // to one who asks for nothing that is shown
		t.Errorf("the answer is %+v, %v, and has rested %d times", a, err, rested.Load())
	}
}

// TestAnswerThatRestsFails: its leases are given back, whether it was shown or not.
func TestAnswerThatRestsFails(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"short": "x", "in memory of its own": strings.Repeat("x", 1<<20)} {
		w := restingWorld(t, func() error { return errors.New("broken") })
		for range 10 {
			if _, err := w.early(t.Context(), text, func(Answer) {}); err == nil || err.Error() != "broken" {
				t.Errorf("%s: the call = %v", name, err)
			}
		}
		if _, err := w.call(t.Context(), text); err == nil || err.Error() != "broken" {
			t.Errorf("%s: the call = %v", name, err)
		}
		w.mu.Lock()
		for _, id := range w.released {
			if id != shownLease {
				t.Errorf("%s: lease %d was given back", name, id)
			}
		}
		if n := len(w.released); n != 11 {
			t.Errorf("%s: of 11 leases, %d were given back", name, n)
		}
		w.mu.Unlock()
	}
}
