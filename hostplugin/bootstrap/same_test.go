package bootstrap_test

import (
	"archive/zip"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// tree makes a directory with testdata/show.py in all the forms in which Python can run it.
func tree(t *testing.T, python string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"show.py": "testdata/show.py", "local.py": "testdata/local.py",
		"dir/__main__.py": "testdata/show.py", "dir/local.py": "testdata/local.py",
		"pkg/__main__.py": "testdata/show.py", "pkg/mod.py": "testdata/show.py",
		"pkg/__init__.py": os.DevNull,
	}
	archive, err := os.Create(filepath.Join(dir, "app.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(archive)
	for name, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if in, ok := strings.CutPrefix(name, "dir/"); ok {
			w, err := z.Create(in)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../show.py", filepath.Join(dir, "pkg", "link.py")); err != nil {
		t.Fatal(err)
	}
	const compile = "import py_compile; py_compile.compile('show.py', 'show.pyc')"
	cmd := exec.CommandContext(t.Context(), python, "-c", compile)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestProgramSeesWhatPythonAloneShows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind   bootstrap.Kind
		target string // DIR is the directory of the files, and always the current one
	}{
		"absolute":       {bootstrap.Script, "DIR/show.py"},
		"relative":       {bootstrap.Script, "show.py"},
		"dot":            {bootstrap.Script, "./pkg/../show.py"},
		"symbolic link":  {bootstrap.Script, "pkg/link.py"},
		"compiled":       {bootstrap.Script, "DIR/show.pyc"},
		"directory":      {bootstrap.Script, "DIR/dir"},
		"zip":            {bootstrap.Script, "DIR/app.zip"},
		"module":         {bootstrap.Module, "show"},
		"nested module":  {bootstrap.Module, "pkg.mod"},
		"package's main": {bootstrap.Module, "pkg"},
	}
	each(t, func(t *testing.T, python string) {
		dir := tree(t, python)
		for name, tt := range maps.All(tests) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				target := strings.ReplaceAll(tt.target, "DIR", dir)
				args := []string{target, "a", "b c", "--d"}
				var user []string // the user's environment
				if tt.kind == bootstrap.Module {
					args = append([]string{"-m"}, args...)
					user = []string{"GODEBUG=gctrace=0"}
				}
				want := plainIn(t, python, dir, user, args...)
				if want.status != 0 || !strings.Contains(want.stdout, "main: True") {
					t.Fatalf("Python alone: %+v", want)
				}
				got, ending := hosted(t, bootstraptest.Program{
					Python: python, Kind: tt.kind, Target: target, Args: []string{"a", "b c", "--d"}, Dir: dir,
					Env: append(user, "NDBRIDGE_PLUGIN=cookie", "NDBRIDGE_X=1", "PLUGIN_CLIENT_CERT=x", "PLUGIN_UNIX_SOCKET_DIR=/x"),
				})
				if got.status != 0 || ending.Text("stage") != "finished" {
					t.Errorf("status %d, %v", got.status, ending)
				}
				diff(t, "stdout", got.stdout, want.stdout)
				diff(t, "stderr", got.stderr, want.stderr)
			})
		}
	})
}

// What the program imports by a name of its own must not find what the bootstrap imported before it.
func TestProgramsOwnModulesAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		path := script(t,
			"import sys",
			"before = sorted(m for m in sys.modules if not m.startswith('_'))",
			"import ctypes, struct, types",
			"print(ctypes.OWN, struct.OWN)",
			"print(before)",
		)
		for _, name := range []string{"ctypes.py", "struct.py"} {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("OWN = __name__\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: path})
		want := plain(t, python, "", path)
		// Since 3.13, python -c itself imports linecache.
		seen := strings.NewReplacer("'ndbridge', ", "", "'linecache', ", "").Replace(got.stdout)
		diff(t, "stdout", seen, want.stdout)
		if !strings.HasPrefix(got.stdout, "ctypes struct\n") {
			t.Errorf("stdout %q, stderr %q", got.stdout, got.stderr)
		}
	})
}

// A stale module in the current directory must not get between the bootstrap and Python's own.
func TestCurrentDirectoryIsNotImportedFrom(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		dir := t.TempDir()
		for _, name := range []string{"ctypes.py", "struct.py", "runpy.py"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("raise SystemExit('wrong module')\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: script(t, "print('ran')"), Dir: dir})
		if got.stdout != "ran\n" || got.status != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestProgramEndsAsWithPythonAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lines  []string
		stage  string
		text   string // of the message
		module bool
	}{
		"end":             {lines: []string{"print('x', end='')"}, stage: "finished"},
		"exit None":       {lines: []string{"import sys", "sys.exit()"}, stage: "finished"},
		"exit 0":          {lines: []string{"raise SystemExit(0)"}, stage: "finished"},
		"exit 3":          {lines: []string{"raise SystemExit(3)"}, stage: "finished"},
		"exit -1":         {lines: []string{"raise SystemExit(-1)"}, stage: "finished"},
		"exit True":       {lines: []string{"raise SystemExit(True)"}, stage: "finished"},
		"exit text":       {lines: []string{"raise SystemExit('no camera')"}, stage: "finished", text: "no camera"},
		"exit object":     {lines: []string{"raise SystemExit((1, 2))"}, stage: "finished", text: "(1, 2)"},
		"raise":           {lines: []string{"def f():", "    raise ValueError('no')", "f()"}, stage: "failed"},
		"raise in module": {lines: []string{"def f():", "    raise ValueError('no')", "f()"}, stage: "failed", module: true},
		"chain": {lines: []string{
			"try:", "    {}['k']", "except KeyError as e:", "    raise RuntimeError('after') from e",
		}, stage: "failed"},
		"syntax":      {lines: []string{"def f(:", "    pass"}, stage: "failed"},
		"bad str":     {lines: []string{"class E(Exception):", "    def __str__(self): 1/0", "raise E"}, stage: "failed"},
		"recursion":   {lines: []string{"class E(BaseException): pass", "raise E('base')"}, stage: "failed"},
		"own hook":    {lines: []string{"import sys", "sys.excepthook = lambda *a: print('hook', a[:2])", "1/0"}, stage: "failed"},
		"broken hook": {lines: []string{"import sys", "def h(*a): [].pop()", "sys.excepthook = h", "1/0"}, stage: "failed"},
		"no hook":     {lines: []string{"import sys", "del sys.excepthook", "1/0"}, stage: "failed"},
		"no stderr":   {lines: []string{"import sys", "sys.stderr = None", "1/0"}, stage: "failed"},
		"exit handlers": {lines: []string{
			"import atexit, threading",
			"atexit.register(print, 'atexit')",
			"main = threading.Event()",
			"threading.Thread(target=lambda: (main.wait(), print('thread'))).start()",
			"print('main'); main.set()",
		}, stage: "finished"},
		"executor": {lines: []string{
			"from concurrent.futures import ThreadPoolExecutor",
			"with ThreadPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, -2])))",
		}, stage: "finished"},
		"unraisable": {lines: []string{
			"class D:", "    def __del__(self): raise ValueError('late')", "d = D()",
		}, stage: "finished"},
		"thread raises": {lines: []string{
			"import threading", "t = threading.Thread(target=lambda: 1/0, name='T')", "t.start()", "t.join()",
		}, stage: "finished"},
	}
	each(t, func(t *testing.T, python string) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := script(t, tt.lines...)
				p := bootstraptest.Program{Python: python, Target: path, Dir: filepath.Dir(path)}
				args := []string{path}
				if tt.module {
					p.Kind, p.Target = bootstrap.Module, "script"
					args = []string{"-m", "script"}
				}
				want := plain(t, python, p.Dir, args...)
				got, ending := hosted(t, p)
				if got.status != want.status {
					t.Errorf("status %d, want %d", got.status, want.status)
				}
				diff(t, "stdout", got.stdout, want.stdout)
				diff(t, "stderr", got.stderr, want.stderr)
				if ending.Text("stage") != tt.stage || ending.Text("text") != tt.text {
					t.Errorf("told the host %v, want %s %q", ending, tt.stage, tt.text)
				}
			})
		}
	})
}

// Here Python's words differ between a file and a text, but it is an error like any other.
func TestUnreadableScript(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		for name, text := range map[string]string{"null": "x = 1\n\x00", "encoding": "# coding: nonsense"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got, ending := hosted(t, bootstraptest.Program{Python: python, Target: script(t, text)})
				if got.status != 1 || !strings.Contains(got.stderr, name) || ending.Text("stage") != "failed" ||
					strings.Contains(got.stderr, "<ndbridge>") {
					t.Errorf("%+v, %v", got, ending)
				}
			})
		}
	})
}

// The programs use no Queue: one child in a hundred that ends beside the thread of a Queue crashes in Python 3.8 alone.
func TestMultiprocessing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		for _, method := range []string{"fork", "spawn", "forkserver"} {
			t.Run(method, func(t *testing.T) {
				t.Parallel()
				path := script(t,
					"import multiprocessing, os, sys",
					"def work(n): return n * n, __name__, os.path.basename(sys.argv[0]), sys.argv[1:]",
					"if __name__ == '__main__':",
					"    multiprocessing.set_start_method(sys.argv[1])",
					"    with multiprocessing.Pool(2) as pool: print(pool.map(work, range(3)))",
					"    q = multiprocessing.SimpleQueue()",
					"    p = multiprocessing.Process(target=q.put, args=('said',))",
					"    p.start(); print(q.get()); p.join(); print(p.exitcode)",
				)
				want := plain(t, python, "", path, method)
				if !strings.Contains(want.stdout, "said\n0\n") {
					t.Fatalf("Python alone: %+v", want)
				}
				got, _ := hosted(t, bootstraptest.Program{Python: python, Target: path, Args: []string{method}})
				diff(t, "stdout", got.stdout, want.stdout)
				diff(t, "stderr", got.stderr, want.stderr)
			})
		}
	})
}

// The code must be the same text in every Python, whatever the user's locale is, and one message.
func TestCodeIsASCII(t *testing.T) {
	t.Parallel()
	for i, c := range bootstrap.Code() {
		if c > 126 {
			t.Fatalf("%q at %d", c, i)
		}
	}
	if n := len(bootstrap.Code()); n > fdpass.MaxMessage {
		t.Errorf("%d bytes", n)
	}
}

// TestListOfProcesses: who looks for the program sees its name and arguments, and no program text of ours.
func TestListOfProcesses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, python string) {
		path := script(t, "print(len(open('/proc/self/cmdline').read()))")
		got, _ := hosted(t, bootstraptest.Program{Python: python, Target: path, Args: []string{"an argument"}})
		want := len(python) + len(standin) + len(path)
		if n, err := strconv.Atoi(strings.TrimSpace(got.stdout)); err != nil || n > want+400 {
			t.Errorf("%d bytes, of which the names are %d, %v", n, want, err)
		}
	})
}
