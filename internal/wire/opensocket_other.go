//go:build !linux

package wire

import (
	"errors"
	"os"
)

func openSocket(path string) (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: path, Err: errors.ErrUnsupported}
}
