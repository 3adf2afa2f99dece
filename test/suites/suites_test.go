package suites

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

var (
	reportFlag = flag.String("suites.report", "", "run every suite on every Python, and write a table into this file")
	nameFlag   = flag.String("suites.name", "", "run only the suites whose name contains this")
	pythonFlag = flag.String("suites.python", "", "run only on Pythons whose path contains this")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSuites runs a selection of a few minutes on the oldest and the newest Python; with -suites.report, all on
// all.
func TestSuites(t *testing.T) {
	pythons := newest(harness.Pythons(t))
	var jobs []job
	if *reportFlag == "" {
		for _, q := range quickFiles {
			if q.oldest {
				jobs = append(jobs, job{pythons[0], q.suite, hosted})
			}
			if q.newest {
				jobs = append(jobs, job{pythons[len(pythons)-1], q.suite, hosted})
			}
		}
		for _, s := range numpySuites("test_dlpack") {
			jobs = append(jobs, job{harness.Python(t), s, hosted})
		}
		jobs = append(jobs, job{harness.PythonAll(t), torchSuite, hosted})
	} else {
		for _, python := range pythons {
			for _, s := range allFiles {
				jobs = append(jobs, job{python, s, hosted})
			}
		}
		for _, s := range numpySuites(numpyTests...) {
			jobs = append(jobs, job{harness.Python(t), s, hosted})
		}
		jobs = append(jobs, job{harness.PythonAll(t), torchSuite, hosted})
	}
	var report table
	runAll(t, jobs, report.add)
	t.Cleanup(func() {
		if *reportFlag != "" {
			if err := os.WriteFile(*reportFlag, []byte(report.text()), 0o600); err != nil {
				t.Error(err)
			}
		}
	})
}

// runAll runs those that the flags leave, and what there is of them.
func runAll(t *testing.T, jobs []job, add func(python, suite string, v verdict)) {
	t.Helper()
	for _, j := range jobs {
		if !strings.Contains(j.suite.name, *nameFlag) || !strings.Contains(j.python, *pythonFlag) || !j.exists(t) {
			continue
		}
		t.Run(version(t, j.python)+"/"+j.suite.name, func(t *testing.T) {
			t.Parallel()
			add(version(t, j.python), j.suite.name, j.run(t))
		})
	}
}

// newest gives one interpreter of each version, that with the newer NumPy.
func newest(pythons []string) []string {
	return slices.DeleteFunc(slices.Clone(pythons), func(python string) bool { return !strings.Contains(python, "-new") })
}

var versions sync.Map // of interpreters

func version(t *testing.T, python string) string {
	t.Helper()
	if v, ok := versions.Load(python); ok {
		return v.(string) //nolint:errcheck,forcetypeassert // stored below
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", "import platform; print(platform.python_version(), end='')").Output() //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	versions.Store(python, string(out))
	return string(out)
}

// job is a suite on a Python.
type job struct {
	python string
	suite  suite
	with   func(t *testing.T, python string, s suite) result // hosted or shared
}

// exists reports whether the Python has the suite: some lack files, or have split them.
func (j job) exists(t *testing.T) bool {
	t.Helper()
	if j.suite.kind != "regrtest" {
		return true
	}
	find := "import importlib.util, sys; sys.exit(importlib.util.find_spec('test." + j.suite.args[0] + "') is None)"
	return exec.CommandContext(t.Context(), j.python, "-c", find).Run() == nil //nolint:gosec // the test's own
}

// verdict is what a table says of a job.
type verdict struct {
	tests    int
	both     int      // tests that fail in both runs
	unsteady []string // tests that have failed under a host, and then not
	ours     []string // tests that fail under a host only
	looks    int
}

// again is how often a test is run anew that has failed under a host only.
const again = 3

// run compares both runs. If nothing fails under a host, there is nothing to compare, but for a report. A test that has failed
// under a host only is run again by itself: a machine that is busy makes tests fail, too. The end of the process is never
// a matter of how busy a machine is.
func (j job) run(t *testing.T) verdict {
	with := j.with(t, j.python, j.suite)
	if *reportFlag == "" && len(with.cases) > 0 && len(worse(with, result{})) == 0 {
		t.Logf("%d tests, %v under a host that took %d views", len(with.cases), with.took, with.looks)
		return verdict{tests: len(with.cases), looks: with.looks}
	}
	without := alone(t, j.python, j.suite)
	if without.cases == nil {
		t.Fatalf("no result without a host: status %d\n%s", without.status, lastLines(without.output))
	}
	v := verdict{tests: len(without.cases), looks: with.looks}
	t.Logf("%d tests, %v without a host, %v under one that took %d views", v.tests, without.took, with.took, with.looks)
	if err := died(with, without); err != nil {
		t.Error(err)
		v.ours = []string{"the process died"}
		return v
	}
	for _, what := range without.cases {
		if bad(what) {
			v.both++
		}
	}
	for _, name := range worse(with, without) {
		if text := j.fails(t, name); text != "" {
			v.ours = append(v.ours, name)
			t.Errorf("%s fails under a host only:\n%s", name, text)
		} else {
			v.unsteady = append(v.unsteady, name)
		}
	}
	return v
}

// fails runs one test again, until it passes under a host, or fails without one: then it gives "".
func (j job) fails(t *testing.T, name string) string {
	t.Helper()
	one := job{j.python, j.suite.only(name), j.with}
	var last result
	for range again {
		last = j.with(t, one.python, one.suite)
		if _, ran := last.cases[name]; !ran && last.cases != nil && len(one.suite.args) != len(j.suite.args) {
			one = j // it cannot be run by itself
			last = j.with(t, one.python, one.suite)
		}
		if last.cases != nil && !bad(last.cases[name]) {
			return ""
		}
		if bad(alone(t, one.python, one.suite).cases[name]) {
			return ""
		}
	}
	return lastLines(last.output)
}
