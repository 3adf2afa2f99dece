package inspect

import (
	"context"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// topic is what a message is about. A message replaces an older one of its topic that has not been sent yet.
type topic uint8

const (
	aboutProgram topic = iota
	aboutTree
	aboutFound
	aboutBudget
	aboutAlarms
	aboutScalars
	aboutLooks
	aboutArray
	aboutHistory
	aboutPicture
	topics
)

// message is one message of the websocket. Its bytes are shared by all clients that get it.
type message struct {
	bytes  []byte
	binary bool
	sparse bool        // it is of some elements only
	pays   *watch.Pace // for sending it; nil: nobody
}

// outbox holds what a client has not been sent: the newest message of each topic, or what makes it when there is room for
// it. So it is bounded, and a client that takes messages slowly goes without states between.
type outbox struct {
	mu    sync.Mutex
	make  [topics]func() (message, bool)
	order []topic // those that wait, the longest first
	some  chan struct{}
}

func newOutbox() *outbox { return &outbox{some: make(chan struct{}, 1)} }

// put is lazy for a message that is there already.
func (o *outbox) put(t topic, m message) { o.lazy(t, func() (message, bool) { return m, true }) }

// lazy has a message made when it can be sent; it reports false if there is nothing to say.
func (o *outbox) lazy(t topic, f func() (message, bool)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.make[t] == nil {
		o.order = append(o.order, t)
	}
	o.make[t] = f
	select {
	case o.some <- struct{}{}:
	default:
	}
}

// drop forgets what waits of some topics.
func (o *outbox) drop(which ...topic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range which {
		o.make[t] = nil
	}
	o.order = slices.DeleteFunc(o.order, func(t topic) bool { return o.make[t] == nil })
}

// next waits for a message. It is called by one goroutine.
func (o *outbox) next(ctx context.Context) (message, error) {
	for {
		o.mu.Lock()
		var f func() (message, bool)
		if len(o.order) > 0 {
			t := o.order[0]
			o.order = o.order[1:]
			f, o.make[t] = o.make[t], nil
		}
		o.mu.Unlock()
		if f != nil {
			if m, ok := f(); ok {
				return m, nil
			}
			continue
		}
		select {
		case <-o.some:
		case <-ctx.Done():
			return message{}, context.Cause(ctx)
		}
	}
}
