package wire

import (
	"sync"

	"github.com/ndbridge/ndbridge/core"
)

// grants remembers which Lease call granted which lease, for hosts that gave up a call and do not
// know what came of it. The zero value is empty.
type grants struct {
	mu     sync.Mutex
	ids    map[uint64]core.LeaseID
	tokens map[core.LeaseID]uint64
}

// add remembers a grant. It reports false for a token that stands for another one. Token 0 stands
// for no call.
func (g *grants) add(token uint64, id core.LeaseID) bool {
	if token == 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, taken := g.ids[token]; taken {
		return false
	}
	if g.ids == nil {
		g.ids, g.tokens = make(map[uint64]core.LeaseID), make(map[core.LeaseID]uint64)
	}
	g.ids[token], g.tokens[id] = id, token
	return true
}

// remove forgets a lease.
func (g *grants) remove(id core.LeaseID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token, ok := g.tokens[id]; ok {
		delete(g.ids, token)
		delete(g.tokens, id)
	}
}

// take forgets the leases that the calls with these tokens granted, and gives them.
func (g *grants) take(tokens []uint64) []core.LeaseID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []core.LeaseID
	for _, token := range tokens {
		if id, ok := g.ids[token]; ok {
			ids = append(ids, id)
			delete(g.ids, token)
			delete(g.tokens, id)
		}
	}
	return ids
}
