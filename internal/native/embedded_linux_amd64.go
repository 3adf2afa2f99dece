//go:build !ndbridge_nonative

package native

import (
	"io/fs"

	native "github.com/ndbridge/ndbridge/native/linux_amd64"
)

func embedded() (fs.FS, error) { return native.Files() }
