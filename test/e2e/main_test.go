// Package e2e tests the whole on the real thing: a host and a Python program with numpy, torch or
// jax, each in a process of its own; the problems that ndbridge began from; and what a host must survive:
// plugins that lie, and programs that misbehave.
package e2e

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain also runs the binary as a host of its own, for the tests that kill one, and as a plugin that
// lies.
func TestMain(m *testing.M) {
	if config := os.Getenv(hostConfigEnv); config != "" {
		os.Exit(runHost(config))
	}
	if socket := os.Getenv(attachEnv); socket != "" {
		_, _ = os.Stdout.WriteString(runAttached(socket).Error())
		os.Exit(1)
	}
	if name := os.Getenv(lieEnv); name != "" {
		os.Exit(serveLie(name))
	}
	if seed := os.Getenv(callLieEnv); seed != "" {
		os.Exit(serveCallLies(seed))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(commands)
		os.Exit(status)
	}))
}
