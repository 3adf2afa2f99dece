// Package suites runs test suites of others as programs, with a host that looks at their arrays without pause, and
// again without a host: what fails only under a host, or ends a process only there, is ours.
package suites

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// suite is what one process runs.
type suite struct {
	name string   // in reports
	kind string   // how testdata/run.py runs it
	args []string // what of it
}

// regrtest is one of CPython's own test files. Those that a version lacks, or has under another name, are left
// out there.
func regrtest(name string, args ...string) suite {
	return suite{name: name, kind: "regrtest", args: append([]string{name}, args...)}
}

// quick is a suite that runs each time.
type quick struct {
	suite

	oldest, newest bool // on these Pythons
	why            string
}

// gcFile leaves out the test that expects that no other thread makes an object between two statements. A look makes some,
// as any thread does that runs Python, and frees them: docs/RATIONALE.md says more.
var gcFile = regrtest("test_gc", "-i", "test_get_count")

// quickFiles are what runs each time, in about two minutes on two cores. They are the files in which a program and we
// share something: signals, locks, forks, mappings, descriptors, reference counts, buffers.
var quickFiles = []quick{
	{regrtest("test_threadsignals"), true, true, "signals while threads wait for locks: our threads must take none"},
	{regrtest("test_signal", "-m", "*Wakeup*", "-m", "*Pending*", "-m", "*Posix*"), false, true, "pending and blocked signals, descriptors to wake"},
	{regrtest("test_fork1"), false, true, "forks with threads and with the lock of imports held"},
	{regrtest("test_mmap"), true, true, "mappings, which the heap and the host have, too"},
	{regrtest("test_memoryview"), false, true, "buffers that are released while somebody looks"},
	{regrtest("test_array"), true, false, "arrays that cannot grow while a buffer is held"},
	{gcFile, true, true, "what is collected, and when: we must hold nothing"},
	{regrtest("test_fcntl"), true, false, "locks of files and flags of descriptors"},
}

// allFiles are all that `make suites` runs.
var allFiles = []suite{
	regrtest("test_signal"), regrtest("test_threadsignals"), regrtest("test_subprocess"), regrtest("test_fork1"), regrtest("test_os"),
	regrtest("test_mmap"), regrtest("test_threading"), regrtest("test_faulthandler"), regrtest("test_eintr"), regrtest("test_posix"),
	regrtest("test_fcntl"), regrtest("test_select"), regrtest("test_selectors"), gcFile, regrtest("test_weakref"),
	regrtest("test_buffer"), regrtest("test_memoryview"), regrtest("test_array"), regrtest("test_ctypes"),
	regrtest("test_socket", "-m", "*TCP*", "-m", "*UDP*", "-m", "*Sendmsg*", "-m", "*SCMRights*", "-m", "*Interrupted*"),
	regrtest("test_asyncio", "-m", "*test_subprocess*", "-m", "*test_unix_events*", "-m", "*test_locks*", "-m", "*test_runners*", "-m", "*test_tasks*"),
	regrtest("test_multiprocessing_fork", "-m", "*WithProcessesTestProcess*", "-m", "*TestPool*", "-m", "*Shared*", "-m", "*Queue*"),
}

var numpyTests = []string{"test_multiarray", "test_mem_overlap", "test_umath", "test_indexing", "test_memmap", "test_dlpack", "test_mem_policy", "test_nditer"}

// numpySuites are parts of NumPy's own tests. The package was called numpy.core before NumPy 2.
func numpySuites(names ...string) []suite {
	var list []suite
	for _, name := range names {
		list = append(list, suite{name: "numpy " + name, kind: "pytest", args: []string{"--pyargs", "numpy._core.tests." + name}})
	}
	return list
}

var torchSuite = suite{name: "torch", kind: "unittest", args: []string{"torch_suite"}}

// result is what became of one run.
type result struct {
	cases  map[string]string // of each test: "", "failure", "error" or "skipped"
	status int               // of the process, as a shell has it
	output string
	took   time.Duration
	looks  int // how many views the host took
}

// report is the format of JUnit, as far as it is read. Suites hold suites.
type report struct {
	Suites []report `xml:"testsuite"`
	Cases  []struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

// readResult reads the file that testdata/run.py writes; nil if there is none, because the process has died before.
func readResult(file string) map[string]string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var r report
	if err := xml.Unmarshal(text, &r); err != nil {
		return nil
	}
	cases := map[string]string{}
	r.into(cases)
	return cases
}

func (r *report) into(cases map[string]string) {
	for _, s := range r.Suites {
		s.into(cases)
	}
	for _, c := range r.Cases {
		name, what := strings.TrimPrefix(c.Class+"."+c.Name, "."), ""
		switch {
		case c.Error != nil:
			what = "error"
		case c.Failure != nil:
			what = "failure"
		case c.Skipped != nil:
			what = "skipped"
		}
		if !bad(cases[name]) { // a test with parts is told of more than once
			cases[name] = what
		}
	}
}

func bad(what string) bool { return what == "failure" || what == "error" }

// worse lists the tests that fail in one run and not in the other.
func worse(hosted, alone result) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(hosted.cases)) {
		if bad(hosted.cases[name]) && !bad(alone.cases[name]) {
			names = append(names, name)
		}
	}
	return names
}

// died says how a process ended that should have written what became of its tests.
func died(hosted, alone result) error {
	if hosted.cases == nil && alone.cases != nil {
		return fmt.Errorf("the process ended with status %d, and without a host with %d\n%s", hosted.status, alone.status, lastLines(hosted.output))
	}
	return nil
}

func lastLines(text string) string { return text[max(0, len(text)-4000):] }

// only gives the suite with nothing but one test, as far as it can be chosen.
func (s suite) only(test string) suite {
	name, _, _ := strings.Cut(test, "[")
	name = strings.TrimPrefix(path.Ext(name), ".")
	switch {
	case name == "" || strings.ContainsAny(name, " ()"):
	case s.kind == "pytest":
		s.args = append(slices.Clone(s.args), "-k", name)
	case s.kind == "regrtest":
		s.args = []string{s.args[0], "-m", name}
	}
	return s
}
