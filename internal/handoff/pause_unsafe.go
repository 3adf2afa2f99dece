package handoff

import _ "unsafe" // for the name of a function of the runtime's

// pauseCPU rests for some nanoseconds. Without it, a loop that waits for memory to change takes half of the core from the other thread
// that shares it, and that may be the one which is to change the memory.
//
//go:linkname pauseCPU runtime.procyield
func pauseCPU(cycles uint32)
