package driver

// The default streams: what work goes to that names no stream, of all threads or of the calling one.
const (
	LegacyStream Stream = 1
	ThreadStream Stream = 2
)
