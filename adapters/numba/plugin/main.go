// Command plugin is the plugin for Numba: a library that a host loads into the Python programs that it
// starts. Build it with -buildmode=c-shared.
package main

import (
	"github.com/ndbridge/ndbridge/adapters/kit/entry"
	"github.com/ndbridge/ndbridge/adapters/numba"
	"github.com/ndbridge/ndbridge/internal/wire"
)

func init() { //nolint:gochecknoinits // a library has no other beginning
	entry.Register("numba", wire.Release, numba.New())
}

func main() {}
