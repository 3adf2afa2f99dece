// Package native embeds the plugin and the shared heap for Linux on arm64. Its files are built for a release; a clone of the
// repository has none until "make native" makes them.
package native

import (
	"embed"
	"io/fs"
)

//go:embed files
var content embed.FS

// Files returns SHA256SUMS, which names each file and its checksum, and each file compressed by zstd, as NAME.zst. In a clone
// that has built none it holds a note alone.
func Files() (fs.FS, error) { return fs.Sub(content, "files") }
