package core

// SyncPolicy says which work on a GPU is waited for before an array there may be touched.
type SyncPolicy uint8

// The synchronization policies. The zero value leaves the choice to the adapter, which knows what its
// framework can say.
const (
	SyncDefault SyncPolicy = iota
	SyncDevice             // all work that the array's context was given until then, on any stream
	SyncStream             // what the framework itself orders, by DLPack's stream argument or the stream it names
)

var syncTexts = []string{SyncDefault: "default", SyncDevice: "device", SyncStream: "stream"}

// String gives "default", "device" or "stream".
func (p SyncPolicy) String() string { return enumText("sync", syncTexts, int(p)) }

// MarshalText gives the text of String, or an error for an unknown policy.
func (p SyncPolicy) MarshalText() ([]byte, error) {
	return marshalEnum("sync policy", syncTexts, int(p))
}

// UnmarshalText reads what MarshalText gives.
func (p *SyncPolicy) UnmarshalText(text []byte) error {
	i, err := unmarshalEnum("sync policy", syncTexts, text)
	if err == nil {
		*p = SyncPolicy(i)
	}
	return err
}
