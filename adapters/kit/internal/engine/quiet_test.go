package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// folder is the code that makes modules of the program's own, in a folder of the test.
func folder(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("d = %q", t.TempDir()) + `
import sys; sys.path.insert(0, d)
def module(name, code):
    with open(d + "/" + name + ".py", "w") as f: f.write(code)
`
}

// Looks run nothing that the program has not asked for: no module, and no code of a metaclass.
func TestLooksAreQuiet(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a lazy framework": `
import importlib.util
module("cupy", "print('HEARD', flush=True)\n__version__ = '13.0.0'\n")
spec = importlib.util.find_spec("cupy")
spec.loader = importlib.util.LazyLoader(spec.loader)
lazy = importlib.util.module_from_spec(spec); sys.modules["cupy"] = lazy; spec.loader.exec_module(lazy)
class Bad: pass
bad = Bad()
`,
		"its own traceback": `
module("traceback", "print('HEARD', flush=True)\n")
class Bad:
    @property
    def x(self): raise ValueError("x")
bad = Bad()
`,
		"a metaclass": `
class Meta(type):
    def __getattr__(cls, name): print("HEARD", name, flush=True); raise AttributeError(name)
    def __getattribute__(cls, name): print("HEARD", name, flush=True); return type.__getattribute__(cls, name)
class Bad(metaclass=Meta): pass
bad = Bad()
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, folder(t)+script+"ba = bytearray(64)\n", programtest.Options{})
			p.Finish(t)
			if _, err := p.View(t, "ba", contract.Request{}); err != nil {
				t.Error(err)
			}
			if _, err := p.View(t, "bad.x", contract.Request{NoWait: true}); err == nil {
				t.Error("there is no bad.x")
			}
			for e, err := range p.Arrays(t.Context()) {
				if err != nil || e.Err != nil {
					t.Errorf("%s: %v, %v", e.Name, e.Err, err)
				}
			}
			_, err := p.View(t, "ba", contract.Request{}) // what was printed before is there after it
			if err != nil || strings.Contains(p.Output(), "HEARD") {
				t.Errorf("%v\n%s", err, p.Output())
			}
		})
	}
}

// A thread that imports a framework holds up nobody.
func TestLooksDoNotWaitForImports(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, folder(t)+`
import threading, time
module("cupy", "import time\nwhile not go: time.sleep(0.01)\n__version__ = '13.0.0'\n".replace("go", "__import__('__main__').go"))
go = False
threading.Thread(target=lambda: __import__("cupy")).start()
while "cupy" not in sys.modules: time.sleep(0.01)
ba = bytearray(64)
class Go:
    @property
    def x(self):
        global go
        go = True
let = Go()
print("ready", flush=True)
`, programtest.Options{})
	p.Said(t, "ready")
	began := time.Now()
	if _, err := p.View(t, "ba", contract.Request{}); err != nil || time.Since(began) > programtest.Patience/2 {
		t.Errorf("%v, after %v", err, time.Since(began))
	}
	if _, err := p.View(t, "let.x", contract.Request{NoWait: true}); err == nil {
		t.Error("None is an array")
	}
	p.Finish(t)
}

// A program that has removed its module __main__ has no variables until it is back, and gets no other module.
func TestNoMain(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import sys
kept = sys.modules.pop("__main__")
ba = bytearray(64)
import ndbridge
ndbridge.publish("there", ba)
print("ready", flush=True)
import time
time.sleep(0.2)
sys.modules["__main__"] = kept
time.sleep(60)
`, programtest.Options{})
	p.Said(t, "ready")
	_, err := p.View(t, "ba", contract.Request{NoWait: true})
	wants(t, "a variable", err, core.ErrNotFound, "__main__")
	if _, err := p.View(t, "there", contract.Request{NoWait: true}); err != nil {
		t.Error(err)
	}
	if _, err := p.View(t, "ba", contract.Request{}); err != nil { // it comes when the module is back
		t.Error(err)
	}
}
