package wire

import (
	"sync"

	"github.com/ndbridge/ndbridge/core"
)

// grantTable remembers which Lease call granted which lease, for hosts that gave up a call and do not
// know what came of it. The zero value is empty.
type grantTable struct {
	mu     sync.Mutex
	ids    map[uint64]core.LeaseID
	tokens map[core.LeaseID]uint64
}

// Add remembers a grant. It reports false for a token that stands for another one. Token 0 stands
// for no call.
func (t *grantTable) Add(token uint64, id core.LeaseID) bool {
	if token == 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.ids[token]; taken {
		return false
	}
	if t.ids == nil {
		t.ids, t.tokens = make(map[uint64]core.LeaseID), make(map[core.LeaseID]uint64)
	}
	t.ids[token], t.tokens[id] = id, token
	return true
}

// Remove forgets a lease.
func (t *grantTable) Remove(id core.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token, ok := t.tokens[id]; ok {
		delete(t.ids, token)
		delete(t.tokens, id)
	}
}

// Take forgets the leases that the calls with these tokens granted, and gives them.
func (t *grantTable) Take(tokens []uint64) []core.LeaseID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []core.LeaseID
	for _, token := range tokens {
		if id, ok := t.ids[token]; ok {
			ids = append(ids, id)
			delete(t.ids, token)
			delete(t.tokens, id)
		}
	}
	return ids
}
