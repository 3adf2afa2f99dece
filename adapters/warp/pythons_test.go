package warp_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have Warp.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	return programtest.Versions(t, "warp", "NDBRIDGE_TEST_PYTHON_MORE")
}

func newest(t *testing.T) string {
	t.Helper()
	return programtest.Newest(t, "warp", "NDBRIDGE_TEST_PYTHON_MORE")
}

// start runs a script with the newest Warp and waits for its end.
func start(t *testing.T, script string, opts programtest.Options) *programtest.Program {
	t.Helper()
	opts.Python = newest(t)
	p := programtest.Start(t, script, opts)
	p.Finish(t)
	return p
}
