//go:build !linux

package native

import (
	"fmt"
	"runtime"
)

func dir() (string, error) {
	return "", fmt.Errorf("%w: programs need Linux, and this is %s", ErrNone, runtime.GOOS)
}
