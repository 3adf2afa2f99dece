package contract

// SyncPolicy says which work of a GPU must be done before anybody touches an array there. The zero value leaves the
// choice to the adapter, which knows what its framework can say.
type SyncPolicy string

// The synchronization policies.
const (
	SyncDevice SyncPolicy = "device" // all work that the array's context was given until then, on any stream
	SyncStream SyncPolicy = "stream" // what the framework orders: by DLPack's stream argument or the stream it names
)
