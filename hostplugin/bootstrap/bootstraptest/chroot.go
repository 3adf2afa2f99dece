//go:build linux

package bootstraptest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// MayChroot gives an interpreter whose program may call os.chroot: the same one for root, for others one that runs as
// the root of a user namespace.
func MayChroot(tb testing.TB, python string) string {
	tb.Helper()
	if os.Getuid() == 0 {
		return python
	}
	wrapper := filepath.Join(tb.TempDir(), "python")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --map-root-user %q \"$@\"\n", python)
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		tb.Fatal(err)
	}
	return wrapper
}
