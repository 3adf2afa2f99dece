package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/quirks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestProbes holds that there is a probe for each adapter, and that each witness in it is of a quirk.
func TestProbes(t *testing.T) {
	t.Parallel()
	for _, table := range quirks.Tables() {
		text, err := probes.ReadFile("probes/probe_" + table.Framework + ".py")
		if err != nil {
			t.Error(err)
		}
		for _, match := range regexp.MustCompile(`"(`+table.Framework+`\.[a-z0-9.-]+)"`).FindAllStringSubmatch(string(text), -1) {
			if !slices.ContainsFunc(table.Quirks, func(q contract.Quirk) bool { return string(q.ID) == match[1] }) {
				t.Errorf("the probe of %s names %s, which is no quirk", table.Framework, match[1])
			}
		}
	}
}

// variable gives what make test tells.
func variable(tb testing.TB, name string) string {
	tb.Helper()
	value := os.Getenv(name)
	if value == "" || os.Getenv("NDBRIDGE_LIB") == "" {
		tb.Fatalf("%s and NDBRIDGE_LIB are not set; run make test", name)
	}
	return value
}

// examine gives what is found, by the parts' names.
func examine(tb testing.TB, opts Options) map[string]*Part {
	tb.Helper()
	if opts.Timeout == 0 {
		opts.Timeout = 5 * time.Minute
	}
	opts.Progress = func(string) {}
	found := make(map[string]*Part)
	if err := Examine(tb.Context(), opts, func(p *Part) error { found[p.Name] = p; return nil }); err != nil {
		tb.Fatal(err)
	}
	return found
}

// well holds that a framework is well, that arrays of it were shared, and which quirks were not seen.
func well(tb testing.TB, p *Part, unseen ...core.QuirkID) {
	tb.Helper()
	if p == nil || p.State != Well || p.Version == "" || p.SharedHeap != "on" {
		tb.Fatalf("got %+v", p)
	}
	written := slices.ContainsFunc(p.Tried, func(t Trial) bool { return t.Written })
	if readOnly := p.Name == "jax" || p.Name == "tensorflow"; written == readOnly {
		tb.Errorf("%s: Python saw what was written: %v", p.Name, written)
	}
	if p.Routes["shared-heap"] < 10 || p.Routes["refused"] == 0 {
		tb.Errorf("%s: routes %v", p.Name, p.Routes)
	}
	for _, q := range p.Quirks {
		if q.Seen == slices.Contains(unseen, q.ID) {
			tb.Errorf("%s %s: %s was seen: %v", p.Name, p.Version, q.ID, q.Seen)
		}
	}
}

// TestNumPy holds that a good environment is well.
func TestNumPy(t *testing.T) {
	t.Parallel()
	found := examine(t, Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON")})
	well(t, found["numpy"])
	for name, state := range map[string]State{"machine": Well, "interpreter": Well, "torch": Absent, "jax": Absent} {
		if p := found[name]; p == nil || p.State != state {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := found["interpreter"]; p == nil || p.Routes["mapped-file"] != 1 || p.Plugin == "" || p.Version == "" {
		t.Errorf("interpreter: %+v", p)
	}
}

// TestAll holds it of PyTorch and JAX.
func TestAll(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("imports torch and jax, which takes long")
	}
	found := examine(t, Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON_ALL")})
	well(t, found["numpy"])
	// The first is hidden by torch.conj-bit, the second is about arguments of calls.
	well(t, found["torch"], "torch.exchange-unchecked", "torch.no-readonly-memory")
	well(t, found["jax"], "jax.may-be-donated") // on a GPU alone
}

// TestMore holds it of Warp and DALI. What needs a GPU is not tried: DALI's dynamic mode, and some of Warp.
func TestMore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("imports warp and dali, which takes long")
	}
	found := examine(t, Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON_MORE")})
	well(t, found["warp"], "warp.gpu-struct-arrays")
	well(t, found["dali"], "dali.dynamic-batch", "dali.dynamic-no-kwargs", "dali.enumerations")
	well(t, found["tensorflow"])
	well(t, found["pyarrow"])
}

// TestGPU holds that frameworks for GPUs are well where there is one, if only a simulated one, and are not
// called ill where there is none.
func TestGPU(t *testing.T) { //nolint:paralleltest // it sets the environment
	if testing.Short() {
		t.Skip("imports numba, cuda.core and pycuda, which takes long")
	}
	for name, python := range map[string]string{
		"numba":    variable(t, "NDBRIDGE_TEST_PYTHON_CUDA"),
		"cudacore": variable(t, "NDBRIDGE_TEST_PYTHON_CUDA"),
		"pycuda":   variable(t, "NDBRIDGE_TEST_PYTHON_PYCUDA"),
	} {
		t.Setenv("LD_LIBRARY_PATH", "")
		opts := Options{Python: python, Frameworks: []string{name}}
		p := examine(t, opts)[name]
		if p.State != Absent || p.Version == "" || len(p.Notes) != 1 || !strings.Contains(p.Notes[0].Message, "no GPU") {
			t.Errorf("%s without a GPU: %+v", name, p)
		}
		t.Setenv("LD_LIBRARY_PATH", variable(t, "NDBRIDGE_TEST_CUDASIM"))
		if p = examine(t, opts)[name]; p.State != Well || len(p.Tried) < 3 {
			t.Errorf("%s with a GPU: %+v", name, p)
		}
		for _, q := range p.Quirks {
			if !q.Seen {
				t.Errorf("%s: %s was not seen", name, q.ID)
			}
		}
	}
}

// TestPythons holds it of every Python, with its oldest and its newest NumPy.
func TestPythons(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes programs under many interpreters")
	}
	for _, python := range filepath.SplitList(variable(t, "NDBRIDGE_TEST_PYTHONS")) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) {
			t.Parallel()
			well(t, examine(t, Options{Python: python, Frameworks: []string{"numpy"}})["numpy"], "numpy.extension-dtypes")
		})
	}
}

// fakes makes modules that programs import in the place of those that are installed.
func fakes(t *testing.T, modules map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range modules {
		if err := os.WriteFile(filepath.Join(dir, name+".py"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYTHONPATH", dir)
}

// TestBroken holds that frameworks that raise, crash or hang are told of, each with a remedy, and stop
// nothing.
func TestBroken(t *testing.T) {
	temporary := t.TempDir()
	fakes(t, map[string]string{
		"torch": "import os\nos.write(2, b'last words\\n')\nos.abort()\n",
		"jax":   "raise ImportError('libjax.so: no such file')\n",
		"warp":  "import time\ntime.sleep(600)\n",
	})
	t.Setenv("TMPDIR", temporary)
	python := variable(t, "NDBRIDGE_TEST_PYTHON")
	found := examine(t, Options{Python: python, Frameworks: []string{"numpy", "torch", "jax", "dali"}})
	well(t, found["numpy"])
	for name, want := range map[string]Problem{
		"torch": {`unavailable: the program was killed by signal 6 (SIGABRT); its last words: "last words"`, "see whether this works: " + python + " -c 'import torch'"},
		"jax":   {`python error: ImportError: libjax.so: no such file`, "mend the installation until this works: " + python + " -c 'import jax'"},
		"dali":  {"it is not installed", "install it, or name with --python the interpreter that has it, not " + found["interpreter"].Interpreter},
	} {
		if p := found[name]; p.State != Wrong || !slices.Equal(p.Problems, []Problem{want}) {
			t.Errorf("%s: %+v, want %+v", name, p.Problems, want)
		}
	}
	d := &doctor{opts: Options{Python: python, Timeout: 3 * time.Second}, dir: t.TempDir()}
	if err := unpack(d.dir); err != nil {
		t.Fatal(err)
	}
	if p := d.framework(t.Context(), "warp"); p.State != Wrong || !strings.Contains(p.Problems[0].Message, "no end within 3s") {
		t.Errorf("warp: %+v", p)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCrashWithTheHeapAlone holds that users are told what is our fault.
func TestCrashWithTheHeapAlone(t *testing.T) { //nolint:paralleltest // it sets the environment
	fakes(t, map[string]string{"sitecustomize": `
import ctypes, os, sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "numpy" and "probe_numpy" in sys.argv[0] and hasattr(ctypes.CDLL(None), "ndheap_abi"):
            os.abort()

sys.meta_path.insert(0, Finder())
`})
	p := examine(t, Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON"), Frameworks: []string{"numpy"}})["numpy"]
	if p.State != Wrong || len(p.Problems) != 2 || p.Problems[1].Message != "it works without the shared heap" {
		t.Errorf("got %+v", p)
	}
}

// TestOtherPlugin holds that what a plugin has no adapter for is not examined, and that it is told of if it was
// asked for.
func TestOtherPlugin(t *testing.T) {
	t.Parallel()
	opts := Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON"), Plugin: "numpy"}
	found := examine(t, opts)
	well(t, found["numpy"])
	if len(found) != 3 {
		t.Errorf("found %v", slices.Sorted(maps.Keys(found)))
	}
	opts.Frameworks = []string{"jax"}
	want := Problem{"the plugin " + found["numpy"].Plugin + " has no adapter for it", "name with --plugin one that has, or none"}
	if p := examine(t, opts)["jax"]; p.State != Wrong || !slices.Equal(p.Problems, []Problem{want}) {
		t.Errorf("jax: %+v", p)
	}
}

// TestWithoutTheHeap holds that a missing shared heap is told of once, and nothing else is wrong with copies.
func TestWithoutTheHeap(t *testing.T) {
	dir := t.TempDir()
	plugin, err := filepath.Abs(filepath.Join(variable(t, "NDBRIDGE_LIB"), "ndbridge-numpy.so"))
	if err == nil {
		err = os.Symlink(plugin, filepath.Join(dir, "ndbridge-numpy.so"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NDBRIDGE_LIB", dir)
	found := examine(t, Options{Python: variable(t, "NDBRIDGE_TEST_PYTHON"), Plugin: "numpy"})
	if p := found["interpreter"]; p == nil || p.State != Wrong || !strings.HasPrefix(p.Problems[0].Message, "the shared heap is off: ") {
		t.Errorf("interpreter: %+v", p)
	}
	if p := found["numpy"]; p == nil || p.State != Well || p.Routes["shared-heap"] != 0 || p.Routes["staged"] == 0 {
		t.Errorf("numpy: %+v", p)
	}
}

// TestNoInterpreter holds that nothing else is examined where nothing runs.
func TestNoInterpreter(t *testing.T) {
	t.Parallel()
	for python, want := range map[string]string{
		"/bin/true":        "bad configuration: /bin/true is not a Python interpreter that works",
		"/no/such/python3": "bad configuration: the interpreter cannot be used: /no/such/python3 does not exist",
	} {
		found := examine(t, Options{Python: python})
		p := found["interpreter"]
		if p == nil || p.State != Wrong || !strings.HasPrefix(p.Problems[0].Message, want) || p.Problems[0].Remedy == "" || len(found) != 2 {
			t.Errorf("%s: %+v", python, found)
		}
	}
}
