package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap/bootstraptest"
)

// due is a program in which the next object that is made brings a collection on, before Python 3.12. Whoever runs it says so.
const due = `
import array, gc, os, sys, time, types, _thread
gc.collect(); gc.disable()
main = _thread.get_ident()
class Ends:
    def __del__(self): # perhaps within a print
        os.write(1, b"ENDED %r %r\n" % (_thread.get_ident() == main, gc.isenabled()))
class Asked:
    @property
    def x(self):
        print("SEES", gc.isenabled(), flush=True)
        return [bytearray(64)] + [[] for _ in range(1000)]
asked = Asked()
ba, mv, arr = bytearray(64), memoryview(bytearray(64)).cast("i"), array.array("d", [1, 2])
box = types.SimpleNamespace(a={"k": [bytearray(64)]})
class Own: pass
own = Own(); own.x = bytearray(64)
import numpy as np
a, small, odd = np.zeros(1 << 16), np.float32(3), np.zeros((8, 8))[::2, ::3]
class Sub(np.ndarray): pass
sub = np.zeros(8).view(Sub)
FRAMEWORK
e = Ends(); e.me = e; del e
for _ in range(1000): l = []; l.append(l)
del l
gc.enable(); os.write(1, b"ready\n"); time.sleep(600) # which make no object that is collected
`

// The collector, and with it finalizers of the program, runs in no thread of the plugin's but in code of the program's,
// which finds it on.
func TestLooksCollectNothing(t *testing.T) {
	t.Parallel()
	names := []string{"ba", "mv", "arr", "box.a['k'][0]", "own.x", "a", "small", "odd", "sub"}
	pythons := bootstraptest.Interpreters(t)
	maps.DeleteFunc(pythons, func(version, _ string) bool { return len(version) == len("3.12") && version >= "3.12" })
	for version, python := range pythons {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			collectsNothing(t, python, "", names)
		})
	}
	t.Run("PyTorch", func(t *testing.T) {
		t.Parallel()
		python := programtest.Newest(t, "PyTorch", "NDBRIDGE_TEST_PYTHON_ALL")
		collectsNothing(t, python, "import torch; t = torch.zeros(1 << 16); part = t[::2]", append(names, "t", "part"))
	})
}

func collectsNothing(t *testing.T, python, framework string, names []string) {
	t.Helper()
	p := programtest.Start(t, strings.Replace(due, "FRAMEWORK", framework, 1), programtest.Options{Python: python})
	p.Said(t, "ready")
	for _, name := range names {
		if _, err := p.View(t, name, contract.Request{NoWait: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(p.Output(), "ENDED") {
			t.Fatalf("a look at %s has run the collector", name)
		}
	}
	if _, err := p.View(t, "asked.x[0]", contract.Request{}); err != nil {
		t.Error(err)
	}
	p.Said(t, "SEES True")
	p.Said(t, "ENDED False True")
}
