package ring

import "sync/atomic"

// Word is a word anywhere in the memory of a ring, which a peer may change at any time.
func Word(mem []byte, offset int) *atomic.Uint32 { return word(mem, offset) }

// Where both sides say that they sleep, and on which CPU they are; those of the caller in the first lane.
const (
	ServerAsleep = offAsleep
	ServerCPU    = offCPU
	CallerAsleep = headerSize + laneSleeping
	CallerCPU    = headerSize + laneCPU
)
