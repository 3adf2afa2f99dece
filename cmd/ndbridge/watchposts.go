package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/watch"
)

const (
	// postsAtOnce is how many alarms are posted at once: few servers take hundreds, and each post has its time.
	postsAtOnce = 4
	// postsEnd is how long after the end posts may begin.
	postsEnd = 10 * time.Second
)

// posts posts alarms to a webhook.
type posts struct {
	env   *environ
	turns chan struct{} // has one for each that is under way
	late  chan struct{} // closed when none is begun any more
	all   sync.WaitGroup
}

func newPosts(env *environ) posts {
	return posts{env: env, turns: make(chan struct{}, postsAtOnce), late: make(chan struct{})}
}

// post posts an alarm when it is its turn. What goes wrong is reported.
func (p *posts) post(ctx context.Context, url, program string, e watch.Event) {
	p.all.Go(func() {
		err := errors.New("it was not sent, since others take too long")
		select {
		case p.turns <- struct{}{}:
			err = watch.Post(ctx, url, program, e)
			<-p.turns
		case <-p.late:
		}
		if err != nil {
			p.env.report(fmt.Errorf("webhook: %s: %w", prose.Line(e.String()), err))
		}
	})
}

// end waits until all are posted, or it is too late.
func (p *posts) end() {
	late := time.AfterFunc(postsEnd, func() { close(p.late) })
	defer late.Stop()
	p.env.stderr.Progress("posting alarms")
	defer p.env.stderr.Stop()
	p.all.Wait()
}
