package ring

// Scribble writes a word anywhere in the memory of a ring, as a peer may at any time.
func Scribble(mem []byte, offset int, value uint32) { word(mem, offset).Store(value) }
