//go:build linux && ((!amd64 && !arm64) || ndbridge_nonative)

package native

import (
	"fmt"
	"io/fs"
	"runtime"
)

func embedded() (fs.FS, error) {
	return nil, fmt.Errorf("%w: it was built for linux/%s, or with the tag ndbridge_nonative", ErrNone, runtime.GOARCH)
}
