package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/test/gpu/report"
)

// section is a part of the tests that can be run by itself.
type section struct {
	name  string
	title string
	steps []step
}

// step is some tests of one package.
type step struct {
	pkg     string        // folder in the repository, and in the bundle
	tests   string        // pattern
	timeout time.Duration // for all of them
}

var allSections = []section{
	{"table", "What crosses, and in which order", []step{{"test/gpu", "^TestTable$", 4 * time.Minute}}},
	{"kernels", "Kernels of the host", []step{{"test/gpu", "^TestKernel", 2 * time.Minute}}},
	{"calls", "Calls with arrays on a GPU", []step{{"test/gpu", "^TestCalls$", 3 * time.Minute}}},
	{"founding", "The founding problems", []step{
		{"test/e2e", "GPU|NumPyAcceptsOnlyStreamNone", 2 * time.Minute},
		{"test/gpu", "^TestFounding", time.Minute},
	}},
	{"witness", "Witnesses of the quirks", []step{
		{"adapters/torch", "^TestGPU", time.Minute},
		{"adapters/jax", "^TestGPU", time.Minute},
		{"adapters/cupy", "^TestGPU", time.Minute},
		{"adapters/numba", ".", time.Minute},
		{"adapters/pycuda", ".", time.Minute},
		{"adapters/cudacore", ".", time.Minute},
		{"adapters/warp", "^TestGPU", time.Minute},
		{"adapters/dali", "^TestGPU", time.Minute},
	}},
	{"again", "What is known again", []step{{"test/gpu", "^TestKnownAgain$", 2 * time.Minute}}},
	{"costs", "Costs", []step{
		{"test/gpu", "^TestCosts", 2 * time.Minute},
		{"internal/gpu/costs", ".", time.Minute},
	}},
	{"stats", "Figures of arrays, where they are", []step{
		{"stats", "OnGPU", 3 * time.Minute},
		{"test/gpu", "^TestStats$", 2 * time.Minute},
	}},
	{"stress", "Ten thousand views", []step{{"test/gpu", "^TestStress", 2 * time.Minute}}},
	{"undisturbed", "Looking disturbs nothing", []step{{"test/gpu", "^TestUndisturbed", 8 * time.Minute}}},
	{"faults", "What is wrong is said", []step{{"test/gpu", "^TestFault", 2 * time.Minute}}},
	{"cudapkg", "The packages below, on this driver", []step{
		// What needs neither a compiler nor faults on demand.
		{"internal/gpu/driver", "Errors|NothingLoads", time.Minute},
		{"internal/gpu", "Inspect(Walks|Stops|Says|Refuses|Tells)|TheEnds|PinnedMemory|ContextEnds", time.Minute},
		{"internal/gpu/hosttest", ".", 3 * time.Minute},
	}},
}

func sectionNames() []string {
	var names []string
	for _, s := range allSections {
		names = append(names, s.name)
	}
	return names
}

// packages lists the packages of all sections, each once.
func packages() []string {
	var all []string
	for _, s := range allSections {
		for _, step := range s.steps {
			if !slices.Contains(all, step.pkg) {
				all = append(all, step.pkg)
			}
		}
	}
	return all
}

// sectionResult is how a section went.
type sectionResult struct {
	Name  string       `json:"name"`
	Title string       `json:"title"`
	Steps []stepResult `json:"steps"`
	Rows  []report.Row `json:"rows"`
}

// stepResult is how the tests of one package went.
type stepResult struct {
	Package string        `json:"package"`
	Command string        `json:"command"`
	Took    time.Duration `json:"took_ns"`
	Error   string        `json:"error,omitempty"` // of the test binary as a whole
	Tests   []testResult  `json:"tests"`
}

func (r *sectionResult) passed() bool {
	for _, s := range r.Steps {
		if s.Error != "" {
			return false
		}
	}
	return true
}

// run runs a section. What its tests print is kept in a file beside the report.
func (s section) run(ctx context.Context, opts options, out io.Writer) sectionResult {
	result := sectionResult{Name: s.name, Title: s.title}
	rows := filepath.Join(opts.out, s.name+".rows")
	_ = os.Remove(rows) // of a run before
	for _, step := range s.steps {
		framework, one := strings.CutPrefix(step.pkg, "adapters/")
		if one && !slices.Contains(strings.Split(opts.frameworks, ","), framework) {
			continue // the report says what was tested
		}
		r := step.run(ctx, opts, rows, filepath.Join(opts.out, s.name+".log"))
		fmt.Fprintf(out, "%s: %s\n", r.Package, r.summary())
		result.Steps = append(result.Steps, r)
	}
	var err error
	if result.Rows, err = report.Read(rows); err != nil {
		result.Steps = append(result.Steps, stepResult{Package: "report", Error: err.Error()})
	}
	_ = os.Remove(rows) // they are in gpu.json
	return result
}

// run runs the tests of one package in the folder that they know.
func (s step) run(ctx context.Context, opts options, rows, log string) stepResult {
	binary := "./" + path.Base(s.pkg) + ".test"
	args := []string{"-test.v", "-test.count=1", "-test.run", s.tests, "-test.timeout", s.timeout.String()}
	result := stepResult{Package: s.pkg, Command: fmt.Sprintf("%s.test -test.run %s", path.Base(s.pkg), s.tests)}
	const grace = 10 * time.Second // for a test binary that prints its goroutines
	ctx, cancel := context.WithTimeout(ctx, s.timeout+grace)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir = filepath.Join(opts.bundle, "tests", filepath.FromSlash(s.pkg))
	command.Env = environment(opts, rows)
	command.WaitDelay = grace
	start := time.Now()
	text, err := command.CombinedOutput()
	result.Took = time.Since(start)
	if err != nil {
		result.Error = err.Error()
	}
	result.Tests = parseTests(string(text), opts)
	if err == nil && len(result.Tests) == 0 {
		result.Error = "no test has run"
	}
	if err := appendLog(log, result.Command, text); err != nil {
		result.Error += "; " + err.Error()
	}
	return result
}

// environment is what the tests are told; they never look for these things themselves.
func environment(opts options, rows string) []string {
	return append(os.Environ(),
		"NDBRIDGE_LIB="+filepath.Join(opts.bundle, "lib"),
		"NDBRIDGE_TEST_PYTHON="+opts.python,
		"NDBRIDGE_TEST_PYTHON_ALL="+opts.python,
		"NDBRIDGE_TEST_PYTHON_MORE="+opts.python,
		"NDBRIDGE_TEST_PYTHON_GPU="+opts.python,
		"NDBRIDGE_TEST_GPU_FRAMEWORKS="+opts.frameworks,
		"NDBRIDGE_TEST_REPORT="+rows,
	)
}

func appendLog(file, command string, text []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "$ %s\n%s\n", command, text); err != nil {
		return err
	}
	return f.Close()
}
