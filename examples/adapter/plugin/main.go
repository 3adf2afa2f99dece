// Command plugin is the plugin for gridlib: a library that a host loads into the Python programs that it
// starts. Build it with -buildmode=c-shared.
package main

import (
	"github.com/ndbridge/ndbridge/adapters/kit/entry"

	gridlib "example.com/gridlib-adapter"
)

func init() { //nolint:gochecknoinits // a library has no other beginning
	entry.Register("gridlib", "1.0.0", gridlib.New())
}

func main() {}
