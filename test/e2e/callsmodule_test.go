package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// modules are what a program finds beside its script.
var modules = map[string]string{
	"apart/__init__.py": "",
	"apart/inner.py": `
import threading
on_main = threading.current_thread() is threading.main_thread()
class Net:
    @staticmethod
    def where(): return __name__
    def __call__(self): return on_main
nets = {"a:b": Net()}
answer = 42
`,
	"raising.py":  "class Wrong(Exception): pass\nraise Wrong('as it is imported')\n",
	"exiting.py":  "import sys\nsys.exit(3)\n",
	"awaiting.py": "import gate\nwhile not gate.open: pass\ndef f(): return 5\n",
	"gate.py":     "open = False\n",
}

// importing starts a program with modules beside its script.
func importing(t *testing.T, script string, opts harness.Options) *harness.Run {
	t.Helper()
	opts.Configs = append(opts.Configs, func(c *hostplugin.Config) {
		for name, text := range modules {
			file := filepath.Join(filepath.Dir(c.Programs[0].Script), name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	})
	return harness.Start(t, script, opts)
}

// TestFunctionsOfModules imports a module for a function of it, as soon as the program begins.
func TestFunctionsOfModules(t *testing.T) {
	startedAndAttached(t, func(t *testing.T, attached bool) {
		run := importing(t, "import sys, remote\nremote.serve()\n", harness.Options{Attached: attached})
		if got := value(t, fn(t, run, "json:dumps"), []int{1, 2}); got != "[1, 2]" {
			t.Errorf("json:dumps gave %v", got)
		}
		run.Remote.Exec(t, "import threading") // which takes the thread that imports it first for the main one, before Python 3.13
		if got := value(t, fn(t, run, "apart.inner:Net.where")); got != "apart.inner" {
			t.Errorf("a method of a class of a module is one of %v", got)
		}
		if got := value(t, fn(t, run, `apart.inner:nets["a:b"]`)); got != false {
			t.Errorf("the module was imported on the main thread: %v", got)
		}
		if !harness.Eval[bool](t, run.Remote, "'apart' not in globals() and sys.modules['apart'].inner.answer == 42") {
			t.Error("the import left something else behind than import does")
		}
		for name, want := range map[string]struct {
			category error
			says     string
		}{
			"nosuchmodule:f":       {core.ErrPython, "ModuleNotFoundError: No module named 'nosuchmodule'"},
			"apart.none:f":         {core.ErrPython, "ModuleNotFoundError: No module named 'apart.none'"},
			"raising:f":            {core.ErrPython, "Wrong: as it is imported"},
			"exiting:f":            {core.ErrPython, "SystemExit"},
			"json:dumpz":           {core.ErrNotFound, "json, which is module, has no attribute dumpz; did you mean \"dump\"?"},
			"apart.inner:Net.gone": {core.ErrNotFound, "apart.inner:Net, which is type, has no attribute gone"},
			`apart.inner:nets[0]`:  {core.ErrNotFound, "apart.inner:nets has no key [0]"},
			"apart.inner:answer":   {core.ErrUnsupported, "cannot be called"},
			"apart.inner:":         {core.ErrConfig, "a name is missing"},
		} {
			cannotFind(t, run, name, want.category, want.says)
		}
		var raised *core.PythonError
		if _, err := run.Func(t.Context(), "raising:f"); !errors.As(err, &raised) || !strings.Contains(raised.Traceback, "raising.py") || strings.Contains(raised.Traceback, "importlib") {
			t.Errorf("the traceback of a module that raises: %v", raised)
		}
		_, err := run.Session.View(t.Context(), "apart.inner:answer")
		wantCategory(t, err, core.ErrConfig)
		if !strings.Contains(err.Error(), "a module is imported for functions alone") {
			t.Errorf("a view of what a module has: %v", err)
		}
	})
}

func cannotFind(t *testing.T, run *harness.Run, name string, category error, says string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
	defer cancel()
	_, err := run.Func(ctx, name)
	wantCategory(t, err, category)
	if err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want %q", name, err, says)
	}
}

// TestModulesAreImportedWhereFunctionsRun: on the main thread, if the program gives it for that.
func TestModulesAreImportedWhereFunctionsRun(t *testing.T) {
	t.Parallel()
	run := importing(t, `
import threading, ndbridge, remote
def on_main(): return threading.current_thread() is threading.main_thread()
remote.start()
ndbridge.serve()
`, harness.Options{})
	onMain := fn(t, run, "on_main")
	harness.Eventually(t, harness.StartBound, "the program serves", func() bool { return value(t, onMain) == true })
	if got := value(t, fn(t, run, `apart.inner:nets["a:b"]`)); got != true {
		t.Errorf("the module was imported on another thread: %v", got)
	}
}

// TestImportsAreGivenUp: who does not wait for an import any more interrupts it, as a function. It can be begun again.
func TestImportsAreGivenUp(t *testing.T) {
	t.Parallel()
	run := importing(t, "import gate, sys, remote\nremote.serve()\n", harness.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := run.Func(ctx, "awaiting:f")
	wantCategory(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("an import that was given up: %v", err)
	}
	harness.Eventually(t, harness.StartBound, "the import has ended", func() bool {
		return harness.Eval[bool](t, run.Remote, "'awaiting' not in sys.modules")
	})
	run.Remote.Exec(t, "gate.open = True")
	if got := value(t, fn(t, run, "awaiting:f")); got != int64(5) {
		t.Errorf("a module that was imported again gave %v", got)
	}
}
