// Package quirks is a copy of the tables of quirks of all adapters that come with ndbridge, for those who
// have no adapter to ask: hosts, which check configurations, and the command line. The adapters need
// cgo; hosts do without.
package quirks

import "github.com/ndbridge/ndbridge/core/contract"

// Table is the quirks of one adapter, in the order in which they edit a plan.
type Table struct {
	Framework string // the adapter's name: "numpy"
	Quirks    []contract.Quirk
}

// Tables gives those of all adapters. They are the caller's.
func Tables() []Table { return tables() }
