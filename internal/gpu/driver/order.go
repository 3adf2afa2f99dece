package driver

// The default streams for work that names no stream: of the whole process, or of the calling thread.
const (
	LegacyStream Stream = 1
	ThreadStream Stream = 2
)
