package handoff

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/ring"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// TestWildAnswers: a producer that answers with what was once an answer, changed here and there, cut or
// of another lease, is asked by many. Whatever the host takes is a lease that holds what leases promise,
// and what it refuses is given back by its ID.
func TestWildAnswers(t *testing.T) {
	t.Parallel()
	const lanes = 4
	file, err := shm.Create("wild", ring.Size(lanes))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := shm.Map(file, ring.Size(lanes), true)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	var good [][]byte
	for _, l := range examples() {
		b, _ := appendLease(nil, &l)
		putNumber(b, 1)
		again := slices.Clone(b[:answerDescription])
		again[answerKind] = answerAgain
		good = append(good, b, again)
	}
	server, err := ring.NewServer(memory.Bytes(), lanes, 0, ring.Service{
		Handle: func(_, answer []byte) int { return wild(good, answer) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := NewClient(file, Ring{Segment: Segment, Size: ring.Size(lanes), Lanes: lanes}, 0, func(core.LeaseID) {})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var callers sync.WaitGroup
	shared := client.Source("x")
	for range 8 {
		callers.Go(func() {
			for range 500 {
				l, err := client.Lease(t.Context(), shared, core.Request{}, nothing{})
				if err == nil {
					err = l.Whole().Check(core.Request{})
				}
				if errors.Is(err, ring.ErrClosed) || err == nil && !l.Lease.Layout.DType().Valid() {
					t.Errorf("Lease = %+v, %v", l, err)
				}
			}
		})
	}
	callers.Wait()
}

// wild changes one of the good answers.
func wild(good [][]byte, answer []byte) int {
	b := slices.Clone(good[rand.IntN(len(good))])
	for range rand.IntN(4) {
		b[rand.IntN(len(b))] = byte(rand.Uint32())
	}
	if rand.IntN(8) == 0 {
		b = b[:rand.IntN(len(b))]
	}
	return copy(answer, b)
}

// TestWildRequests: a host that sends anything gets an answer, and the producer nothing that is no request.
func TestWildRequests(t *testing.T) {
	t.Parallel()
	p := &fake{lease: granting(examples()["segment"])}
	server, err := NewServer(p, Settings{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file, err := server.Open(Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := shm.Map(file, ring.Size(1), true)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	client, err := ring.NewClient(memory.Bytes(), 0, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := appendRequest(nil, &request{op: opLease, source: 2, name: []byte("x"), releases: []core.LeaseID{1, 2}})
	for range 2000 {
		b := slices.Clone(request)
		for range rand.IntN(4) {
			b[rand.IntN(len(b))] = byte(rand.Uint32())
		}
		lane, err := client.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := lane.Call(t.Context(), b[:len(b)-rand.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kindOf(answer); err != nil {
			t.Errorf("%x is answered with %x: %v", b, answer, err)
		}
		lane.Release()
	}
}
