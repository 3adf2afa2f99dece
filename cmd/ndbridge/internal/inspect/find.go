package inspect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core/contract"
)

const (
	// maxFound is how many arrays a page is told of that were searched for.
	maxFound   = 2000
	maxPattern = 4096
	// searchTime is how long a search may take.
	searchTime = 30 * time.Second
)

// found is what a page is told of its search.
type found struct {
	Topic   string  `json:"topic"` // "found"
	Pattern string  `json:"pattern"`
	Entries []entry `json:"entries"`
	More    int     `json:"more"`    // others
	Partial bool    `json:"partial"` // not all was looked through
	Error   string  `json:"error,omitempty"`
}

// find searches for what a page asks for: a pattern of names, or a name that means what it leads to; "" ends the search. The caller holds the lock.
func (h *hub) find(c *client, pattern string) error {
	if len(pattern) > maxPattern {
		return errors.New("a long pattern")
	}
	if c.search != nil {
		c.search()
		c.search = nil
	}
	c.out.drop(aboutFound)
	if pattern == "" || h.alive == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.alive, searchTime)
	c.search = cancel
	h.running.Go(func() {
		defer cancel()
		m := jsonMessage(h.search(ctx, pattern))
		h.mu.Lock()
		defer h.mu.Unlock()
		if !errors.Is(ctx.Err(), context.Canceled) { // the page searches for something else
			c.out.put(aboutFound, m)
		}
	})
	return nil
}

func (h *hub) search(ctx context.Context, pattern string) found {
	m := found{Topic: "found", Pattern: pattern, Entries: []entry{}}
	if !strings.Contains(pattern, "*") {
		pattern = looks.Below(pattern)
	}
	all, err := looks.Search(ctx, h.options.Session, contract.Search{Pattern: pattern, Limit: maxFound, Numbers: true})
	if err != nil {
		m.Error = err.Error()
		return m
	}
	m.More, m.Partial = all.More, all.Partial
	for _, e := range all.Entries {
		for _, name := range append([]string{e.Name}, e.Also...) { // those fit the pattern, too
			e.Name = name
			m.Entries = append(m.Entries, entryOf(e))
		}
	}
	for _, n := range all.Numbers {
		m.Entries = append(m.Entries, entryOfNumber(n))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorder.addNumbers(all.Numbers)
	return m
}
