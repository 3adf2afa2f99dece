package handoff

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// changed gives bytes with some of them changed, perhaps cut.
func changed(b []byte) []byte {
	b = slices.Clone(b)
	for range rand.IntN(4) {
		b[rand.IntN(len(b))] = byte(rand.Uint32())
	}
	if rand.IntN(8) == 0 {
		b = b[:rand.IntN(len(b))]
	}
	return b
}

// TestWildAnswers: a producer that answers with what was once an answer, changed here and there, is asked by
// many. Each call returns, and what it takes is whole.
func TestWildAnswers(t *testing.T) {
	t.Parallel()
	const slots = 4
	file, err := shm.Create("wild", MailboxSize(slots))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := shm.Map(file, MailboxSize(slots), true)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	n := len(results())
	good := answerOf(t, results())
	server, err := NewMailboxServer(memory.Bytes(), slots, 0, func(_, answer []byte) []byte {
		return append(answer, changed(good)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	m := Memory{Segment: Segment, Size: MailboxSize(slots), Slots: slots}
	client, err := newClient(file, m, plain{}, 0, time.Minute, func(contract.LeaseID) {})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for i := range 500 {
				looks, err := refreshAll(t, client, i%5 == 0, make([]contract.LeaseID, n)...)
				for _, l := range looks {
					if err != nil && l.Status != Ask || l.Status > Fenced || l.Status == Fenced && l.Fence.Size < 4 {
						t.Errorf("%+v, %v", l, err)
					}
				}
				if err := client.Release(t.Context(), 1); err != nil && !errors.Is(err, ErrAsk) {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// TestWildRequests: a host that sends anything gets an answer, and the producer nothing that is no request.
func TestWildRequests(t *testing.T) {
	t.Parallel()
	p := &fake{}
	server, err := NewServer(p, p.Release, plain{}, Settings{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	memory, err := shm.Map(server.file, MailboxSize(1), true)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	client, err := NewMailboxClient(memory.Bytes(), 0, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, r := range requests() {
		for range 500 {
			slot, err := client.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b := changed(write(r))
			answer, err := slot.Call(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if len(answer) < answerHead || answer[0] != answerAsk && answer[0] != answerDone {
				t.Errorf("%x is answered with %x", b, answer)
			}
			slot.Release()
		}
	}
	for _, call := range p.took() {
		for _, name := range call.names {
			if name == "" || len(name) > MaxName {
				t.Errorf("asked for a name of %d bytes", len(name))
			}
		}
	}
}
