package calls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
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

// TestShownAnswerThatIsGivenUp: whoever was shown it gives back what it is on, and nobody else does so once more when it comes.
func TestShownAnswerThatIsGivenUp(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	w := restingWorld(t, func() error { <-proceed; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	a, err := w.early(ctx, "x", func(a Answer) {
		if !rests(&a, "x") {
			t.Errorf("%+v was shown", a)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) || len(a.Leases) != 0 {
		t.Errorf("a call that was given up = %+v, %v", a, err)
	}
	close(proceed)
	if a, err := w.call(t.Context(), "y"); err != nil || !rests(&a, "y") { // on the same worker, which is back
		t.Errorf("the next call = %+v, %v", a, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.released) != 0 {
		t.Errorf("%v were given back, besides by who was shown them", w.released)
	}
}

// liar is the way to a program that shows one answer, and gives another one. Its answers are on leases.
type liar struct {
	*world
	lied    atomic.Bool
	cleanup func(func())
}

func (l *liar) Workers(context.Context, int) error {
	var server *handoff.MailboxServer
	made := make(chan struct{})
	answer := func(id contract.LeaseID, text string) []byte {
		a := Answer{Kind: Done, Leases: []contract.Lease{{ID: id}}, Values: []byte(text)}
		b, _ := a.Append(nil, plain{}) // never fails
		return b
	}
	server, err := handoff.NewMailboxServer(mailbox(l.server.mapping.Bytes(), 0), 1, time.Millisecond, func(_, _ []byte) []byte {
		<-made
		server.Early(answer(1, "shown"))
		for !l.lied.Load() {
			time.Sleep(time.Millisecond)
		}
		return answer(2, "given")
	})
	close(made)
	if err == nil {
		l.cleanup(server.Close)
	}
	return err
}

// TestAnotherAnswerThanWasShown is an error, and what it is on is given back. What was shown is given back by who has taken it.
func TestAnotherAnswerThanWasShown(t *testing.T) {
	t.Parallel()
	l := &liar{world: newWorld(t, 1)}
	l.cleanup = t.Cleanup
	file, err := l.server.Open(Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	client, err := NewClient(file, l.server.Memory(), plain{}, l, room{l.world}, Settings{Workers: 1, Spin: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := &Request{Op: OpCall, Target: 4, Early: func(a Answer) {
		if string(a.Values) != "shown" || a.Leases[0].ID != 1 {
			t.Errorf("%+v was shown", a)
		}
		l.lied.Store(true)
	}}
	if err := client.Call(t.Context(), r, new(Answer)); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("the call = %v, want an error of the protocol", err)
	}
	if !slices.Equal(l.released, []contract.LeaseID{2}) {
		t.Errorf("%v were given back, want 2", l.released)
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

// TestAnswerThatCannotBe is an error, and what comes next does not go into the memory that it was read from: another call has that by then.
func TestAnswerThatCannotBe(t *testing.T) {
	t.Parallel()
	c := &Client{codec: plain{}, room: room{newWorld(t, 1)}}
	a := Answer{Values: make([]byte, 0, 8)}
	bad, err1 := (&Answer{Kind: outside, Values: []byte("slot")}).Append(nil, plain{})
	good, err2 := (&Answer{Kind: Done, Values: []byte("next")}).Append(nil, plain{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(bad)
	if err := c.read(t.Context(), bad, &a); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("an answer in no lease = %v", err)
	}
	if err := c.read(t.Context(), good, &a); err != nil || string(a.Values) != "next" || !slices.Equal(bad, before) {
		t.Errorf("the next answer is %q, %v, and the memory of the one before %q", a.Values, err, bad)
	}
}
