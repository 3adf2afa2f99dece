package contract

import "github.com/ndbridge/ndbridge/core"

// Configurer is a [Producer] that takes settings. The server of a session calls Configure when the host opens the
// session, before any other method. An error ends the session; the host reports it.
type Configurer interface {
	Configure(settings Settings) error
}

// Settings is what the host's user configured for one program: plain data.
type Settings struct {
	Program  string // the program's name, for error texts
	Adapters []AdapterSettings
	GPUs     []UUID // the GPUs whose memory the host can map

	CopyMappedFiles bool // arrays in mapped files that can shrink are copied
	Promote         PromotePolicy
}

// AdapterSettings says how a producer treats the arrays of one framework.
type AdapterSettings struct {
	Name           string // the adapter's name: "numpy"
	Copy           CopyPolicy
	Sync           SyncPolicy
	DisabledQuirks []core.QuirkID
	QuirkEffects   map[core.QuirkID]string // of quirks that have a choice: the effect that the user chose
}
