package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// hammer looks at the program's arrays without pause while steps run. What it sees belongs to no moment that
// could be compared; but the program must not notice, and no error may say that one side is wrong.
type hammer struct {
	begun, ended chan struct{}
	stop         atomic.Bool
	group        sync.WaitGroup
	lookers      []looker
	wrong        error
	looks        int
}

func startHammer(ctx context.Context, session *hostplugin.Session, names []string) *hammer {
	h := &hammer{begun: make(chan struct{}), ended: make(chan struct{})}
	h.lookers = append(h.lookers, lookers(session, false, nil)...)
	h.lookers = append(h.lookers, newLatestLooker(session, nil))
	rng := rand.New(rand.NewPCG(1, 2))
	h.group.Go(func() {
		for range h.begun {
			for !h.stop.Load() {
				h.look(ctx, rng, names)
				h.looks++
			}
			h.ended <- struct{}{}
		}
	})
	return h
}

func (h *hammer) look(ctx context.Context, rng *rand.Rand, names []string) {
	name, l := names[rng.IntN(len(names))], h.lookers[rng.IntN(len(h.lookers))]
	l.look(ctx, []string{name}, "-", func(_ int, v *core.View, err error) bool {
		if _, ok := errors.AsType[*failure](err); ok || errors.Is(err, core.ErrProtocol) || errors.Is(err, core.ErrConfig) {
			h.wrong = failed("hammer", "%s of %s while steps run: %v", l.name(), name, err)
		}
		if v != nil {
			v.Live()
		}
		return false
	})
}

// reset closes the views. No step runs.
func (h *hammer) reset() {
	for _, l := range h.lookers {
		l.reset()
	}
}

func (h *hammer) begin() {
	h.stop.Store(false)
	h.begun <- struct{}{}
}

func (h *hammer) end() error {
	h.stop.Store(true)
	<-h.ended
	wrong := h.wrong
	h.wrong = nil
	return wrong
}

func (h *hammer) close() {
	close(h.begun)
	h.group.Wait()
}
