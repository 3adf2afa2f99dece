package hostplugin

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// checkSystem says whether programs can run here.
func checkSystem() error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return &core.Error{Kind: core.ErrUnavailable, Err: fmt.Errorf("uname: %w", err)}
	}
	return supported(unix.ByteSliceToString(name.Release[:]), bits.UintSize)
}

// supported says whether programs can run on a kernel with a host whose words have that many bits.
func supported(release string, bits int) error {
	switch {
	case bits != 64:
		return &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("this host is built for %d bits (%s), and programs have 64", bits, runtime.GOARCH),
			Remedy: "build the host with GOARCH=amd64 or arm64",
		}
	// WSL2's kernel is Linux, and ends in -microsoft-standard or -microsoft-standard-WSL2.
	case strings.HasSuffix(release, "-Microsoft"):
		return &core.Error{
			Kind: core.ErrUnsupported, Err: errors.New("programs need Linux, and this is WSL1, which only has some of its system calls"),
			Remedy: "use WSL2: wsl --set-version DISTRIBUTION 2, in Windows",
		}
	}
	return nil
}
