//go:build !linux

package logs

import "errors"

func waiting(uintptr) (int, error) { return 0, errors.ErrUnsupported }

func readFD(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
