package warp_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pythons lists the interpreters that have Warp.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"newest": newest(t)}
	for _, python := range filepath.SplitList(os.Getenv("NDBRIDGE_TEST_PYTHONS_WARP")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python
	}
	return all
}

func newest(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an environment with warp, which is large")
	}
	return programtest.Variable(t, "NDBRIDGE_TEST_PYTHON_MORE")
}

// start runs a script with the newest Warp and waits for its end.
func start(t *testing.T, script string, opts programtest.Options) *programtest.Program {
	t.Helper()
	opts.Python = newest(t)
	p := programtest.Start(t, script, opts)
	p.Finish(t)
	return p
}
