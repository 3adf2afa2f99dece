package wire

import (
	"sync"

	"github.com/ndbridge/ndbridge/core/contract"
)

// grantTable remembers which Lease call granted which lease, for hosts that gave up a call and do not
// know what came of it. The zero value is empty.
type grantTable struct {
	mu     sync.Mutex
	ids    map[uint64]contract.LeaseID
	tokens map[contract.LeaseID]uint64
}

// Add remembers a grant. It reports false for a token that stands for another one. Token 0 stands
// for no call.
func (t *grantTable) Add(token uint64, id contract.LeaseID) bool {
	if token == 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.ids[token]; taken {
		return false
	}
	if t.ids == nil {
		t.ids, t.tokens = make(map[uint64]contract.LeaseID), make(map[contract.LeaseID]uint64)
	}
	t.ids[token], t.tokens[id] = id, token
	return true
}

// Remove forgets a lease.
func (t *grantTable) Remove(id contract.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token, ok := t.tokens[id]; ok {
		delete(t.ids, token)
		delete(t.tokens, id)
	}
}

// Take forgets the leases that the calls with these tokens granted, and gives them.
func (t *grantTable) Take(tokens []uint64) []contract.LeaseID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []contract.LeaseID
	for _, token := range tokens {
		if id, ok := t.ids[token]; ok {
			ids = append(ids, id)
			delete(t.ids, token)
			delete(t.tokens, id)
		}
	}
	return ids
}
