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
	wrong        error
	looks        int
}

func startHammer(ctx context.Context, session *hostplugin.Session, names []string) *hammer {
	h := &hammer{begun: make(chan struct{}), ended: make(chan struct{})}
	l := &intoLooker{sourceLooker{session, map[string]*hostplugin.Source{}}, new(core.View)}
	rng := rand.New(rand.NewPCG(1, 2))
	h.group.Go(func() {
		for range h.begun {
			for !h.stop.Load() {
				name := names[rng.IntN(len(names))]
				l.look(ctx, []string{name}, []hostplugin.ViewOption{hostplugin.NoWait()}, func(_ int, _ *core.View, err error) bool {
					if errors.Is(err, core.ErrProtocol) {
						h.wrong = failed("hammer", "a view of %s while steps run: %v", name, err)
					}
					return false
				})
				h.looks++
			}
			h.ended <- struct{}{}
		}
	})
	return h
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
