// Package version says which version of ndbridge this is.
package version

// Version is the version of this module's commands and plugins.
const Version = "0.1.0"
