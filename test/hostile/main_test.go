// Package hostile gives a host what it must survive: plugins that lie, and programs that misbehave.
// Each case must end in a clear error, in bounded time, with nothing left behind.
package hostile

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also runs the binary as a hostile plugin.
func TestMain(m *testing.M) {
	if name := os.Getenv(lieEnv); name != "" {
		os.Exit(serveLie(name))
	}
	goleak.VerifyTestMain(m)
}
