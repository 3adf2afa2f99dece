package offers

import "sync/atomic"

// Word is a word anywhere in the memory of a table, which a peer may change at any time.
func Word(mem []byte, offset int) *atomic.Uint64 {
	m, err := memoryOf(mem)
	if err != nil {
		panic(err)
	}
	return m.at(offset)
}
