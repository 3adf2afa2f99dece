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
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// ended is how a program that does not behave must end for the host that waits for an array of it.
type ended struct {
	script   string
	category error
	says     string // part of the error's text
	logs     string // part of what the program printed
}

// TestProgramsThatEnd asks programs for an array that they never make, because they end first.
func TestProgramsThatEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]ended{
		"raises":            {"1 / 0", core.ErrPython, "ZeroDivisionError", "Traceback"},
		"does not compile":  {"a = (", core.ErrPython, "SyntaxError", "program.py"},
		"imports nothing":   {"import no_such_module", core.ErrPython, "no_such_module", "Traceback"},
		"recurses":          {"def f(): f()\nf()", core.ErrPython, "RecursionError", ""},
		"raises not UTF-8":  {"raise ValueError('\\udcff\\x00\\x1b[31m')", core.ErrPython, "ValueError", ""},
		"raises a base":     {"class Odd(BaseException): pass\nraise Odd('odd')", core.ErrPython, "Odd", ""},
		"interrupts itself": {"import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)", core.ErrPython, "KeyboardInterrupt", ""},
		"exits with 3":      {"import sys; sys.exit(3)", core.ErrUnavailable, "3", ""},
		"exits with text":   {"import sys; sys.exit('no camera')", core.ErrUnavailable, "", "no camera"},
		"exits well":        {"import sys; sys.exit()", core.ErrNotFound, "", ""},
		"ends":              {"b = 1", core.ErrNotFound, "", ""},
		"os._exit":          {"import os; os._exit(0)", core.ErrUnavailable, "", ""},
		"os._exit with 5":   {"import os; os._exit(5)", core.ErrUnavailable, "5", ""},
		"aborts":            {"import os; os.abort()", core.ErrUnavailable, "", ""},
		"is killed":         {"import os, signal; os.kill(os.getpid(), signal.SIGKILL)", core.ErrUnavailable, "killed", ""},
		"crashes":           {"import ctypes; ctypes.string_at(8)", core.ErrUnavailable, "", ""},
		"becomes another":   {"import os; os.execv('/bin/sleep', ['sleep', '60'])", core.ErrUnavailable, "", ""},
		"forks and raises":  {"import os\nif os.fork() == 0: raise ValueError('the child')\nos.wait()\n1 / 0", core.ErrPython, "ZeroDivisionError", ""},
		"forks and goes on": {"import os\nif os.fork(): os._exit(7)\nimport time; time.sleep(60)", core.ErrUnavailable, "7", ""},
		"closes its output": {"import os, sys\nos.close(1); os.close(2)\nsys.exit(4)", core.ErrUnavailable, "4", ""},
		"spoils builtins":   {"import builtins\nfor n in dir(builtins): delattr(builtins, n)\n1 / 0", core.ErrUnavailable, "", ""},
		"spoils modules":    {"import sys\nsys.modules.clear()\n1 / 0", core.ErrPython, "ZeroDivisionError", ""},
		"prints garbage":    {"import sys\nsys.stdout.buffer.write(bytes(range(256)) * 400)\nsys.exit(6)", core.ErrUnavailable, "6", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, c.script, harness.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
			defer cancel()
			_, err := run.Session.View(ctx, "a")
			wantCategory(t, err, c.category)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
			if c.logs != "" {
				harness.Eventually(t, bound, "the log has "+c.logs, func() bool { return run.Log.Contains(c.logs) })
			}
			if !errors.Is(c.category, core.ErrNotFound) {
				<-run.Done()
				wantCategory(t, run.Err(), core.ErrUnavailable)
			}
			if err := run.Host.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// TestProgramsThatGoOn runs programs that do what a plugin might not survive, and looks at an array
// of theirs afterwards.
func TestProgramsThatGoOn(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"closes fd 1":          "import os; os.close(1)",
		"closes all files":     "import os; os.closerange(3, 1000)",
		"closes stdout":        "import sys; sys.stdout.close(); sys.stderr.close()",
		"no stdout":            "import sys; sys.stdout = sys.stderr = None",
		"redirects fd 1":       "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
		"reads its input":      "import sys; assert sys.stdin.read() == ''",
		"ignores signals":      "import signal\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)",
		"forks":                "import os\nif os.fork() == 0: os._exit(0)\nos.wait()",
		"forks, child ends":    "import os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()",
		"forks, child lingers": "import os, time\nif os.fork() == 0:\n    time.sleep(3600)",
		"changes directory":    "import os; os.chdir('/')",
		"clears environment":   "import os; os.environ.clear()",
		"has few descriptors":  "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
		"small file limit":     "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))",
		"never switches":       "import sys; sys.setswitchinterval(1)",
		"traces":               "import sys; sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)",
		"audits":               "import sys; sys.addaudithook(lambda *a: None)",
		"sub-interpreter":      "import _xxsubinterpreters as s; s.destroy(s.create())",
		"odd globals":          "class Odd:\n    def __getattr__(self, n): raise SystemExit(n)\n    __class__ = property(lambda s: 1 / 0)\nodd = Odd()",
		"many globals":         "globals().update(('g%d' % i, i) for i in range(100000))",
		"globals not UTF-8":    "globals()['\\udcff'] = __import__('numpy').zeros(9); globals()[7] = 7",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, "import numpy as np\na = np.full(1 << 16, 7.0)\n"+script+"\nb = np.full(1 << 16, 8.0)\n", harness.Options{})
			for name, want := range map[string]float64{"a": 7, "b": 8} {
				if x, err := core.At[float64](run.View(t, name), 1<<16-1); err != nil || x != want {
					t.Errorf("%s holds %v (%v), want %v", name, x, err, want)
				}
			}
			listed := 0
			for _, err := range run.Arrays(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				listed++
			}
			if listed < 2 {
				t.Errorf("%d arrays are listed, want at least 2", listed)
			}
			pid := run.PID(t)
			if err := run.Host.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if harness.Alive(pid) {
				t.Error("the program lives on after Close")
			}
		})
	}
}

// TestEndlessOutput runs a program that prints a quarter of a gigabyte, and one line of it without an end: the
// program is not held up for good, and the host does not keep it in memory.
func TestEndlessOutput(t *testing.T) {
	count := "1 << 18"
	if testing.Short() {
		count = "1 << 16"
	}
	for name, script := range map[string]string{
		"lines":    "line = 'x' * 1023\nfor _ in range(" + count + "): print(line)",
		"one line": "import sys\npart = 'x' * 1024\nfor _ in range(" + count + "): sys.stdout.write(part)",
		"errors":   "import sys\nline = 'x' * 1023\nfor _ in range(" + count + "): print(line, file=sys.stderr)",
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := harness.Config(t, "import numpy as np\n"+script+"\na = np.ones(1 << 16)\n", harness.Options{})
			cfg.Logger = harness.Discard()
			host, err := hostplugin.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			before := harness.MemoryOf(t, os.Getpid()).Private
			session, err := host.Start(t.Context(), "program")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			view, err := session.View(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			if grown := harness.MemoryOf(t, os.Getpid()).Private - before; grown > 100<<20 {
				t.Errorf("the host's memory grew by %d bytes", grown)
			}
			if err := view.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestArraysThatAreNotThere asks for names that do not lead to an array.
func TestArraysThatAreNotThere(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
frames = [np.zeros(9)]
frame = np.zeros(9)
table = {"left": np.zeros(9)}
number = 7
text = "abc"
class Lazy:
    @property
    def data(self): raise RuntimeError("on purpose")
lazy = Lazy()
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "number") // all of the script has run
	for name, want := range map[string]struct {
		category error
		says     string
	}{
		"":                         {core.ErrConfig, ""},
		"frame()":                  {core.ErrConfig, ""},
		"frame + 1":                {core.ErrConfig, ""},
		"frames[":                  {core.ErrConfig, ""},
		"__import__('os')":         {core.ErrConfig, ""},
		"frames[0":                 {core.ErrConfig, ""},
		"frame\x00":                {core.ErrConfig, ""},
		strings.Repeat("a", 1<<20): {core.ErrConfig, ""},
		"frme":                     {core.ErrNotFound, "frame"},
		"frames[5]":                {core.ErrNotFound, ""},
		"table['rigth']":           {core.ErrNotFound, ""},
		"frame.nothing":            {core.ErrNotFound, ""},
		"lazy.data":                {core.ErrPython, "on purpose"},
		"number":                   {core.ErrUnsupported, "int"},
		"text":                     {core.ErrUnsupported, "str"},
		"table":                    {core.ErrUnsupported, "dict"},
	} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			t.Parallel()
			_, err := run.Session.View(t.Context(), name, hostplugin.NoWait())
			wantCategory(t, err, want.category)
			if err != nil && !strings.Contains(err.Error(), want.says) {
				t.Errorf("error %q does not say %q", err, want.says)
			}
			if e, ok := errors.AsType[*core.Error](err); ok && e.Remedy == "" && errors.Is(want.category, core.ErrConfig) {
				t.Errorf("error %q names no remedy", err)
			}
		})
	}
}

// TestArrayThatIsNotThereYet waits for a name under a context, and gets it once it is there.
func TestArrayThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import numpy as np, remote\nremote.serve()\n", harness.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := run.Session.View(ctx, "late")
	wantCategory(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "late") {
		t.Errorf("error %q does not name the array", err)
	}
	got := make(chan error, 1)
	go func() {
		view, err := run.Session.View(t.Context(), "late")
		if err == nil {
			err = view.Close()
		}
		got <- err
	}()
	run.Remote.Exec(t, "late = np.ones(9)")
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(bound):
		t.Error("the array is there, and the view still waits")
	}
}

// TestStartsThatFail starts what cannot run: each fails in time, says why, and leaves nothing.
func TestStartsThatFail(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "good.py")
	if err := os.WriteFile(script, []byte("a = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := func(name, code string) string { return bootstraptest.WriteProgram(t, name, "#!/bin/sh\n"+code+"\n") }
	good := harness.Library(t, "ndbridge-all.so")
	for name, c := range map[string]struct {
		program  hostplugin.Program
		category error
		says     string
	}{
		"missing script":       {hostplugin.Program{Script: dir + "/no.py"}, core.ErrConfig, "no.py"},
		"script is a folder":   {hostplugin.Program{Script: dir}, core.ErrConfig, ""},
		"missing module":       {hostplugin.Program{Module: "no_such.module"}, core.ErrUnavailable, "no_such"},
		"missing interpreter":  {hostplugin.Program{Python: dir + "/python", Script: script}, core.ErrConfig, "python"},
		"not on PATH":          {hostplugin.Program{Python: "python3.99", Script: script}, core.ErrConfig, "python3.99"},
		"not executable":       {hostplugin.Program{Python: script, Script: script}, core.ErrConfig, "good.py"},
		"not a Python: true":   {hostplugin.Program{Python: "/bin/true", Script: script}, core.ErrConfig, "true"},
		"not a Python: cat":    {hostplugin.Program{Python: "/bin/cat", Script: script}, core.ErrConfig, "cat"},
		"not a Python: fails":  {hostplugin.Program{Python: shell("fails", "echo broken >&2; exit 9"), Script: script}, core.ErrConfig, "9"},
		"not a Python: hangs":  {hostplugin.Program{Python: shell("hangs", "exec sleep 600"), Script: script, StartTimeout: time.Second}, core.ErrConfig, "1s"},
		"not a Python: talks":  {hostplugin.Program{Python: shell("talks", "echo hello; exec sleep 600"), Script: script, StartTimeout: time.Second}, core.ErrConfig, ""},
		"Python that cannot":   {hostplugin.Program{Script: script, Env: map[string]string{"PYTHONHOME": "/nowhere"}}, core.ErrConfig, ""},
		"missing plugin":       {hostplugin.Program{Script: script, Plugin: dir + "/no.so"}, core.ErrConfig, "no.so"},
		"unknown plugin":       {hostplugin.Program{Script: script, Plugin: "nupmy"}, core.ErrConfig, "numpy"},
		"plugin is text":       {hostplugin.Program{Script: script, Plugin: script}, core.ErrUnavailable, ""},
		"plugin is another":    {hostplugin.Program{Script: script, Plugin: harness.Library(t, "libndbridge-heap.so")}, core.ErrVersion, ""},
		"wrong checksum":       {hostplugin.Program{Script: script, Plugin: good, Checksum: "sha256:" + strings.Repeat("0", 64)}, core.ErrConfig, "checksum"},
		"plugin, no script":    {hostplugin.Program{Plugin: good}, core.ErrConfig, "script"},
		"another protocol":     {hostplugin.Program{Plugin: shell("newer", "echo '1|99|unix|/nowhere|grpc|'; exec sleep 600")}, core.ErrVersion, "99"},
		"another go-plugin":    {hostplugin.Program{Plugin: shell("newest", "echo '9|1|unix|/nowhere|grpc|'; exec sleep 600")}, core.ErrVersion, ""},
		"nobody at the socket": {hostplugin.Program{Plugin: shell("nobody", "echo '1|1|unix|/nowhere|grpc|'; exec sleep 600"), StartTimeout: 2 * time.Second}, core.ErrProtocol, ""},
		"garbage for a hello":  {hostplugin.Program{Plugin: shell("garbage", "echo hello, world; exec sleep 600")}, core.ErrProtocol, ""},
		"endless hello":        {hostplugin.Program{Plugin: shell("endless", "exec tr '\\0' x </dev/zero"), StartTimeout: 2 * time.Second}, core.ErrProtocol, ""},
		"silent":               {hostplugin.Program{Plugin: shell("silent", "exec sleep 600"), StartTimeout: time.Second}, core.ErrUnavailable, "1s"},
		"closes all":           {hostplugin.Program{Plugin: shell("closes", "exec 1>&- 2>&- 3>&-; exec sleep 600"), StartTimeout: 2 * time.Second}, core.ErrUnavailable, ""},
		"ends at once":         {hostplugin.Program{Plugin: shell("ends", "exit 3")}, core.ErrUnavailable, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			before := harness.Held(t)
			c.program.Name = "program"
			if c.program.Python == "" && c.program.Script+c.program.Module != "" {
				c.program.Python = harness.Python(t)
			}
			start := time.Now()
			host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{c.program}, Logger: harness.NewLog().Logger()})
			if err == nil {
				var session *hostplugin.Session
				if session, err = host.Start(t.Context(), "program"); err == nil {
					err = session.Wait(t.Context()) // a script's own failure comes after the start
				}
				if closeErr := host.Close(); closeErr != nil && !errors.Is(closeErr, core.ErrUnavailable) { // some have to be killed
					t.Errorf("Close: %v", closeErr)
				}
			}
			if took := time.Since(start); took > 2*bound {
				t.Errorf("failed only after %v", took)
			}
			wantCategory(t, err, c.category)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", err, c.says)
			}
			if e, ok := errors.AsType[*core.Error](err); !ok || e.Remedy == "" && errors.Is(c.category, core.ErrConfig) {
				t.Errorf("error %q names no remedy", err)
			}
			before.Same(t)
		})
	}
}
