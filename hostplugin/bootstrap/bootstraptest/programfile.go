//go:build linux

package bootstraptest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// WriteProgram makes an executable file of a temporary directory, and gives its path.
//
// A process that another test starts meanwhile would inherit the descriptor through which it is
// written, and the kernel runs no file that is open for writing ("text file busy"). So none is started
// until it is closed: https://go.dev/issue/22315.
func WriteProgram(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		tb.Fatal(err)
	}
	return path
}
