package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

const namesScript = `
import collections, sys, types
import numpy as np
import ndbridge

def number(x):
    return np.full(4, float(x))

plain = number(1)
größe = number(2)
model = types.SimpleNamespace(size=1, _own=number(0), weight=number(3), layers=[number(4), number(5)])
batch = {"x": number(6), 7: number(7), (1, 2): number(20), "a.b]": number(8), 'say "hi"': {"deep": (number(9),)}}
default = collections.defaultdict(lambda: number(99), here=number(10))
rows = np.array([[11.0, 12.0], [13.0, 14.0]])

class Strange:
    def __getattr__(self, name):
        if name == "raises":
            raise ValueError("no such thing here")
        raise AttributeError(name)
    def __getitem__(self, key):
        if key == "broken":
            raise RuntimeError("this is broken")
        return number(len(key))

class Slots:
    __slots__ = ("weight", "later")

class Lazy:
    def __array__(self, *args, **kw):
        raise RuntimeError("nobody asked for a copy")

lazy = Lazy()
slots = Slots()
slots.weight = number(21)
pair = collections.namedtuple("Pair", "left right")(number(22), slots)
strange = Strange()
text = "a string"
count = 3
nothing = None
_hidden = number(15)
shadowed = number(16)
ndbridge.publish("shadowed", number(17))
ndbridge.publish("outputs.final[0]", number(18))
ndbridge.publish(" spaced" .strip(), number(19))
`

func TestNames(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, namesScript, programtest.Options{})
	p.Finish(t)
	for name, want := range map[string]float64{
		"plain": 1, "größe": 2, "model.weight": 3, "model.layers[0]": 4, "model.layers[-1]": 5,
		"batch['x']": 6, "batch[7]": 7, `batch["a.b]"]`: 8, `batch['say "hi"']['deep'][0]`: 9,
		"default['here']": 10, "rows[1]": 13, "rows[-1][-1]": 14, "_hidden": 15, "shadowed": 17,
		"outputs.final[0]": 18, "spaced": 19, "strange['four']": 4, "rows.T": 11, "rows[0][1]": 12, "rows[0, 1]": 12, "rows[..., ::-1]": 12, "rows[1:][0][None]": 13, "rows[::-1].T[1]": 14,
		"batch[1, 2]": 20, "slots.weight": 21, "pair.left": 22, "pair.right.weight": 21, "pair[1].weight": 21, "outputs.final[0][1:]": 18, "shadowed[::2]": 17,
	} {
		if got := first(t, p, name); got != want {
			t.Errorf("%s begins with %v, want %v", name, got, want)
		}
	}
	for _, tt := range []struct {
		name  string
		kind  error
		texts []string
	}{
		{"plane", core.ErrNotFound, []string{`did you mean "plain"?`, "looked among the global variables of __main__, what is published (outputs.final[0], shadowed, spaced)"}},
		{"batch['x'].nope.more", core.ErrNotFound, []string{`batch["x"], which is numpy.ndarray, has no attribute nope`}},
		{"shadowd", core.ErrNotFound, []string{`did you mean "shadowed"?`}},
		{"model.wieght", core.ErrNotFound, []string{"model, which is types.SimpleNamespace", `"weight"?`}},
		{"slots.wieght", core.ErrNotFound, []string{"slots, which is __main__.Slots", `"weight"?`}},
		{"slots.later", core.ErrNotFound, []string{"has no attribute later"}},
		{"pair.rigth", core.ErrNotFound, []string{`"right"?`}},
		{"model.layers[2]", core.ErrNotFound, []string{"model.layers has no [2], but a length of 2"}},
		{"batch['y']", core.ErrNotFound, []string{`batch has no key ["y"]`}},
		{"batch[8]", core.ErrNotFound, []string{"batch has no key [8]"}},
		{"default['new']", core.ErrNotFound, nil},
		{"rows[2]", core.ErrNotFound, []string{"rows[2]: index 2 is out of bounds for axis 0 with size 2"}},
		{"rows[0, 0, 0]", core.ErrLayout, []string{"rows[0, 0, 0]: too many indices: the array has 2 axes, but 3 were indexed"}},
		{"model.layers[:1]", core.ErrUnsupported, []string{"list is not an array"}},
		{"model", core.ErrUnsupported, []string{"types.SimpleNamespace is not an array; name what of it is one, such as model.weight"}},
		{"model.size", core.ErrUnsupported, []string{"int is not an array; read it with Session.Value, or publish it"}},
		{"model.layers", core.ErrUnsupported, []string{"such as model.layers[0]"}},
		{"batch", core.ErrUnsupported, []string{`such as batch["x"]`}},
		{"lazy", core.ErrUnsupported, []string{"__main__.Lazy is not an array; its elements come by __array__, as a copy: publish numpy.asarray(lazy)"}},
		{"numpy.pi", core.ErrNotFound, []string{`write sys.modules["numpy"] for it`}},
		{"count[1:]", core.ErrUnsupported, []string{"count is int", "not subscriptable"}},
		{"__builtins__.open", core.ErrUnsupported, []string{"is not an array"}},
		{"open", core.ErrNotFound, nil},
		{"strange.raises", core.ErrPython, []string{"ValueError: no such thing here"}},
		{"strange.other", core.ErrNotFound, []string{"strange, which is __main__.Strange"}},
		{"strange['broken']", core.ErrPython, []string{"RuntimeError: this is broken"}},
		{"count[0]", core.ErrUnsupported, []string{"count is int", "not subscriptable"}},
		{"text", core.ErrUnsupported, []string{"str is not an array"}},
		{"nothing", core.ErrUnsupported, []string{"NoneType is not an array; look again when the program has put an array there"}},
		{"number", core.ErrUnsupported, []string{"function is not an array"}},
		{"plain[", core.ErrConfig, []string{"write names as in Python"}},
		{"number(1)", core.ErrConfig, nil},
	} {
		_, err := p.View(t, tt.name, contract.Request{})
		wants(t, tt.name, err, tt.kind, tt.texts...)
		if e, ok := errors.AsType[*core.Error](err); ok && !errors.Is(tt.kind, core.ErrConfig) && e.Object != tt.name {
			t.Errorf("the error for %s names %q", tt.name, e.Object)
		}
	}
	v, err := p.View(t, "default['new']", contract.Request{})
	if err == nil {
		t.Errorf("looking a key up made it: %v", v)
	}
}

func TestWaitForNames(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import sys, threading, time
import numpy as np
import ndbridge

go = threading.Event()
holder = {}
threading.Timer(0.15, lambda: globals().update(late=np.full(3, 1.0))).start()
threading.Timer(0.25, lambda: holder.update(late=np.full(3, 2.0))).start()
threading.Timer(0.35, lambda: ndbridge.publish("offered", np.full(3, 3.0))).start()
for t in threading.enumerate():
    if isinstance(t, threading.Timer):
        t.join()
end = np.full(3, 4.0)
time.sleep(0.3)
`, programtest.Options{})
	_, err := p.View(t, "late", contract.Request{NoWait: true})
	wants(t, "without waiting", err, core.ErrNotFound)
	for name, want := range map[string]float64{"late": 1, "holder['late']": 2, "offered": 3, "end": 4} {
		if got := first(t, p, name); got != want {
			t.Errorf("%s begins with %v, want %v", name, got, want)
		}
	}
	// The script ends while this one is awaited.
	_, err = p.View(t, "never", contract.Request{})
	wants(t, "at the script's end", err, core.ErrNotFound, "no global variable")
}

// Who has waited in vain hears for what.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import ctypes, sys, threading
holder = {}
go = threading.Event()
class Trigger:
    def __getattr__(self, name):
        go.set()
        raise AttributeError(name)
trigger = Trigger()
go.wait()
sys.setswitchinterval(60)
libc = ctypes.PyDLL(None)  # which keeps the GIL
libc.write(1, b"busy\n", 5)
libc.sleep(3)
`, programtest.Options{})
	late := func(name string, texts ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Lease(ctx, name, contract.Request{})
		wants(t, name, err, context.DeadlineExceeded, texts...)
	}
	late("holder['x']", `not there yet: holder has no key ["x"]`)
	if _, err := p.Lease(t.Context(), "trigger.x", contract.Request{NoWait: true}); err == nil {
		t.Error("trigger.x is there")
	}
	p.Said(t, "busy")
	late("holder['x']", "the interpreter was busy")
}

// TestDeadlineWhileBusy: that the program does not answer at the very end is no news to who has waited for
// a name that was not there.
func TestDeadlineWhileBusy(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import ctypes, threading
asked = threading.Event()
class Holder:
    def __init__(self):
        self.frame = 1
    def __getattr__(self, name):
        asked.set()
        raise AttributeError(name)
holder = Holder()
asked.wait()
ctypes.PyDLL(None).sleep(2)  # with the GIL
`, programtest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := p.Lease(ctx, "holder.fram", contract.Request{})
	wants(t, "holder.fram", err, context.DeadlineExceeded, "not there yet: holder, which is", `did you mean "frame"?`)
}

func TestEndings(t *testing.T) {
	t.Parallel()
	const arrays = "import numpy as np\nframe = np.arange(3.0)\nimport time\ntime.sleep(0.3)\n"
	tests := []struct {
		name, script string
		kind         error
		texts        []string
	}{
		{"raises", arrays + "raise ValueError('the lens is dirty')", core.ErrPython, []string{"ValueError: the lens is dirty"}},
		{"exits", arrays + "import sys; sys.exit(3)", core.ErrUnavailable, []string{"status 3"}},
		{"exits with a text", arrays + "import sys; sys.exit('no camera')", core.ErrUnavailable, []string{"no camera"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, tt.script, programtest.Options{})
			waited := make(chan error, 1)
			go func() { waited <- p.Wait(t.Context()) }()
			_, err := p.View(t, "never", contract.Request{})
			wants(t, "a lease that waits", err, tt.kind, tt.texts...)
			if e, ok := errors.AsType[*core.PythonError](err); errors.Is(tt.kind, core.ErrPython) && (!ok || !strings.Contains(e.Traceback, "script.py")) {
				t.Errorf("no traceback of the script in %+v", e)
			}
			wants(t, "Wait", <-waited, tt.kind, tt.texts...)
		})
	}
}

const publishScript = `
import gc, sys, threading, weakref
import numpy as np
import ndbridge

results = []
def raises(*args):
    try:
        ndbridge.publish(*args)
    except Exception as e:
        results.append("%s: %s" % (type(e).__name__, e))
    else:
        results.append("nothing")

class Frame(np.ndarray):
    pass

frame = np.zeros(4).view(Frame)
gone = weakref.ref(frame)
ndbridge.publish("frame", frame)
del frame
assert gone() is not None
ndbridge.publish("frame", np.ones(4))
gc.collect()
assert gone() is None, "the replaced array is still held"

ndbridge.publish("temporary", np.ones(4))
ndbridge.unpublish("temporary")
try:
    ndbridge.unpublish("temporary")
except KeyError as e:
    results.append("KeyError: %s" % e)

raises("not a name", np.ones(3))
raises("objects", np.array([None]))
raises("text", "text"), raises("large", 2**70)
raises(7, np.ones(3))

class Nasty:
    def __init__(self, name):
        self.name = name
        self.__array_interface__ = {"shape": (2,), "typestr": "<f8", "data": memoryview(bytearray(16)), "version": 3}
    def __del__(self):
        ndbridge.publish(self.name, np.full(3, 42.0))

ndbridge.publish("nasty", Nasty("from_del"))
ndbridge.publish("nasty", np.full(3, 43.0))  # publishes from within publish

def publisher(k):
    for i in range(300):
        ndbridge.publish("contested", np.full(100, float(k)))
threads = [threading.Thread(target=publisher, args=(k,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
said = np.frombuffer("\n".join(results).encode(), "u1")
`

func TestPublish(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, publishScript, programtest.Options{})
	for range 200 { // while the threads publish
		v, err := p.View(t, "contested", contract.Request{})
		if err != nil {
			t.Fatal(err)
		}
		x, err := core.Slice[float64](v)
		if err != nil || len(x) != 100 || x[0] != x[99] {
			t.Fatalf("a torn array: %v, %v", x, err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.Finish(t)
	for name, want := range map[string]float64{"frame": 1, "from_del": 42, "nasty": 43} {
		if got := first(t, p, name); got != want {
			t.Errorf("%s begins with %v, want %v", name, got, want)
		}
	}
	_, err := p.View(t, "temporary", contract.Request{})
	wants(t, "an unpublished name", err, core.ErrNotFound)
	v, err := p.View(t, "said", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	said, err := core.Slice[uint8](v)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"KeyError: ", "nothing is published as", `ValueError: publish "not a name"`, "TypeError: publish objects: wrong dtype",
		"TypeError: publish text: ", "TypeError: publish: the name must be a str, not int", "publish large: wrong dtype: the int does not fit",
	} {
		if !strings.Contains(string(said), want) {
			t.Errorf("Python saw no %q, but\n%s", want, said)
		}
	}
}

func TestArraysListing(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, namesScript+`
import array
raw = b"bytes are no array, but can be viewed"
numbers = array.array("d", [1.0])
refused = np.array([None])
class Mine:
    __array_interface__ = {"shape": (4,), "typestr": "<f8", "data": plain.__array_interface__["data"], "version": 3}
mine = Mine()
class Hopeless:
    def __dlpack_device__(self):
        return (1, 0)
    def __dlpack__(self, **kw):
        raise BufferError("not today")
hopeless = Hopeless()
half = np.float16(2.5)
`, programtest.Options{})
	p.Finish(t)
	var listed []string
	for e, err := range p.Arrays(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, fmt.Sprintf("%s %s %v %v", e.Name, e.Framework, e.Published, e.Layout))
		switch e.Name {
		case "refused":
			wants(t, e.Name, e.Err, core.ErrDType, "numpy.object-dtype")
		case "hopeless":
			wants(t, e.Name, e.Err, core.ErrPython, "BufferError: not today")
		default:
			if e.Err != nil {
				t.Error(e.Err)
			}
		}
	}
	want := []string{
		"größe numpy false float64[4]", "half numpy false float16", "hopeless python false ",
		"mine python false float64[4]", "outputs.final[0] numpy true float64[4]", "plain numpy false float64[4]",
		"refused numpy false ", "rows numpy false float64[2 2]", "shadowed numpy true float64[4]",
		"spaced numpy true float64[4]",
	}
	if len(listed) != len(want) {
		t.Errorf("listed %q", listed)
	}
	for i := range min(len(want), len(listed)) {
		if !strings.HasPrefix(listed[i], want[i]) {
			t.Errorf("listed %q, want %q", listed[i], want[i])
		}
	}
	for _, name := range []string{"raw", "numbers", "mine"} {
		if _, err := p.View(t, name, contract.Request{}); err != nil {
			t.Error(err)
		}
	}
}
