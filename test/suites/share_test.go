package suites

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

var sharedAll = flag.Bool("suites.shared", false, "run the tests of children under TestSharedSuites as a whole, not a selection")

// childFiles are the tests of CPython that make children, and what of them runs each time.
var childFiles = []struct {
	name  string
	quick []string // "": all of it
}{
	{"test_fork1", nil},
	{"test_multiprocessing_fork", []string{"-m", "*WithProcessesTestProcess*", "-m", "*WithProcessesTestPoolWorkerLifetime*"}},
	{"test_multiprocessing_spawn", []string{"-m", "*WithProcessesTestPoolWorkerLifetime*"}},
	{"test_multiprocessing_forkserver", []string{"-m", "*WithProcessesTestPoolWorkerLifetime*"}},
	{"test_multiprocessing_main_handling", []string{"-m", "*test_basic_script"}},
}

// TestSharedSuites runs tests that make children as "ndbridge run --share" would, beside a host that looks at the first process, and alone.
func TestSharedSuites(t *testing.T) {
	var jobs []job
	for _, python := range harness.Pythons(t) {
		if !slices.ContainsFunc([]string{"/3.8-new", "/3.13-new", "/3.14-new"}, func(p string) bool { return strings.Contains(python, p) }) {
			continue
		}
		for _, f := range childFiles {
			args := f.quick
			switch {
			case *sharedAll:
				args = nil
			case strings.Contains(python, "/3.13-") && f.name != "test_fork1":
				continue // as with 3.14, but for the start method of its own
			}
			jobs = append(jobs, job{python, regrtest(f.name, args...), shared})
		}
	}
	loaders := torchSuite
	loaders.args = []string{"torch_suite.TorchSuite"}
	jobs = append(jobs, job{harness.PythonAll(t), loaders, shared})
	runAll(t, jobs, func(string, string, verdict) {})
}

// shared runs a suite whose Pythons listen, beside a host that looks at the first of them.
func shared(t *testing.T, python string, s suite) result {
	t.Helper()
	host, run := harness.NewHost(t), filepath.Join(t.TempDir(), "run") // which is made with the right mode
	var l looking
	env := []string{"LD_PRELOAD=" + harness.Library(t, "libndbridge-heap.so"), "NDBRIDGE_HEAP_LISTEN=" + run}
	r := process(t, python, s, env, func(ctx context.Context, pid int) {
		session, err := host.Attach(ctx, hostplugin.Socket(filepath.Join(run, "run."+strconv.Itoa(pid))).Await())
		if err != nil {
			l.check(ctx, "the suite", err)
			return
		}
		l.session = session
		l.begin(ctx)
		<-ctx.Done()
		l.end()
		_ = session.Close() // the program has ended
	})
	if l.wrong != nil {
		t.Errorf("%s: %v", s.name, l.wrong)
	}
	if l.looks == 0 {
		t.Errorf("%s: the host has seen nothing\n%s", s.name, lastLines(r.output))
	}
	r.looks = l.looks
	return r
}
