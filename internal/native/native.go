// Package native unpacks the plugin and the shared heap that a host's executable embeds. The nested module of the host's
// platform holds them, compressed. The build tag ndbridge_nonative leaves that module out, for distributions that package the
// files themselves.
package native

import "errors"

// Plugin is the name of the plugin that is embedded.
const Plugin = "all"

// ErrNone means that the executable embeds nothing.
var ErrNone = errors.New("the executable embeds no plugin")

// Dir returns a directory that holds the embedded files as they were built. Dir unpacks what is not there yet, and what was
// changed. All hosts of one user and one release share the directory. No file in it is ever half written.
//
// An error that wraps [ErrNone] says why the executable embeds nothing. Any other error is a *core.Error of kind
// core.ErrConfig without an Op, or says that the executable itself is broken.
func Dir() (string, error) { return dir() }
