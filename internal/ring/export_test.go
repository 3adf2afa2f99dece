package ring

import "sync/atomic"

// Leave moves the calling thread away from a CPU.
func Leave(cpu int) { leave(cpu) }

// Word is a word anywhere in the memory of a ring, which a peer may change at any time.
func Word(mem []byte, offset int) *atomic.Uint32 { return word(mem, offset) }
