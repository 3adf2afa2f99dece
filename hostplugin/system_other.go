//go:build !linux

package hostplugin

import (
	"fmt"
	"runtime"

	"github.com/ndbridge/ndbridge/core"
)

func checkSystem() error {
	return &core.Error{
		Kind: core.ErrUnsupported, Err: fmt.Errorf("programs need Linux, and this is %s", runtime.GOOS),
		Remedy: "run the host where its programs are, on Linux",
	}
}
