package engine_test

import (
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// shows takes a view of x and compares all its elements.
func shows(t *testing.T, p *programtest.Program, want float64) {
	t.Helper()
	v, err := p.View(t, "x", contract.Request{NoWait: true})
	if err != nil {
		t.Error(err)
		return
	}
	all, err := core.Slice[float64](v)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x != want {
			t.Errorf("x shows %v, want %v", all, want)
			return
		}
	}
}

// TestPublishIsOvertaken: what is published beside another publication of the same name, which the code of an array
// makes, is what was published last, and nothing is given up twice or for ever.
func TestPublishIsOvertaken(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import gc, sys
import numpy as np, ndbridge
a, b = np.full(4, 1.0), np.full(4, 2.0)
class Evil:
    def __init__(self): self.own = np.full(4, 5.0)
    @property
    def __array_interface__(self):
        ndbridge.publish("x", b)
        return self.own.__array_interface__
before = sys.getrefcount(a), sys.getrefcount(b)
for _ in range(20):
    ndbridge.publish("x", a)
    ndbridge.publish({"x": a, "y": Evil()})
    ndbridge.publish({"x": a, "y": Evil()})
during = sys.getrefcount(a) - before[0]
ndbridge.unpublish("y")
gc.collect()
junk = [np.full(4, 77.0) for _ in range(1000)]
print("references", during, sys.getrefcount(b) - before[1], flush=True)
`, programtest.Options{})
	p.Finish(t)
	shows(t, p, 1)
	if out := p.Output(); !strings.Contains(out, "references 1 0") {
		t.Errorf("%s, want one reference to what is published, and none to what is not", out)
	}
}

// TestPublishInThreads: names are published by several threads, together and alone, and which is last is one of theirs.
func TestPublishInThreads(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import gc, sys, threading, time
import numpy as np, ndbridge
interval = sys.getswitchinterval()
sys.setswitchinterval(1e-6)
a, b = np.full(4, 1.0), np.full(4, 2.0)
m = np.ma.masked_array(np.full(2000, 3.0), mask=False)
m.mask = np.zeros(2000, bool)
stop = time.time() + 2
def both():
    while time.time() < stop: ndbridge.publish({"x": a, "y": m})
def one():
    while time.time() < stop: ndbridge.publish("x", b)
before = sys.getrefcount(a), sys.getrefcount(b)
threads = [threading.Thread(target=f) for f in (both, both, one)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setswitchinterval(interval)
ndbridge.unpublish("x")
ndbridge.unpublish("y")
gc.collect()
print("references", sys.getrefcount(a) - before[0], sys.getrefcount(b) - before[1], flush=True)
`, programtest.Options{})
	p.Finish(t)
	if out := p.Output(); !strings.Contains(out, "references 0 0") {
		t.Errorf("%s, want none", out)
	}
}

// TestLookIsOvertaken: a look at a published object that has other memory by now publishes it anew, but not over what
// the program publishes meanwhile.
func TestLookIsOvertaken(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import numpy as np, ndbridge
one, two, three = np.full(4, 1.0), np.full(4, 2.0), np.full(4, 3.0)
class Moving:
    now, trap, n = one, False, 0
    @property
    def __array_interface__(self):
        if Moving.trap:
            Moving.n += 1
            if Moving.n == 4:  # when it is published anew; each time it is asked twice
                ndbridge.publish("x", three)
        return self.now.__array_interface__
m = Moving()
ndbridge.publish("x", m)
Moving.now, Moving.trap = two, True
`, programtest.Options{})
	p.Finish(t)
	shows(t, p, 3)
	shows(t, p, 3)
}

// TestLookIsOvertakenOften: a program that publishes a name anew ten times under a look has the last one seen, and not an error.
func TestLookIsOvertakenOften(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import numpy as np, ndbridge
class Moving:
    asked = times = 0
    trap = False
    def __init__(self): self.now = np.full(4, 1.0)
    @property
    def __array_interface__(self):
        if Moving.trap:
            Moving.asked += 1
            if Moving.asked % 4 == 1:
                self.now = np.full(4, 2.0)  # so it is published anew
            if Moving.asked % 4 == 0 and Moving.times < 10:
                Moving.times, Moving.trap = Moving.times + 1, False
                ndbridge.publish("x", Moving())
                Moving.trap = True
            elif Moving.times == 10:
                Moving.trap = False
        return self.now.__array_interface__
ndbridge.publish("x", Moving())
Moving.trap = True
`, programtest.Options{})
	p.Finish(t)
	shows(t, p, 2)
}

// TestCopyIsReadInAnotherWay: a copy that another framework's array takes the place of is another lease, which says so.
func TestCopyIsReadInAnotherWay(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import array
import numpy as np
x = np.full(4, 1.0)
class S:
    @property
    def go(self):
        global x
        x = array.array("d", [2.0] * 4)
        return np.zeros(1)
s = S()
`, programtest.Options{})
	p.Finish(t)
	l, err := p.Lease(t.Context(), "x", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.View(t, "s.go", contract.Request{}); err != nil {
		t.Fatal(err)
	}
	again, changed, err := p.Refresh(t.Context(), l.ID)
	if err != nil || !changed || again.Framework != "python" {
		t.Errorf("Refresh = %v %v, %v; the lease before was of %s", again.Framework, changed, err, l.Framework)
	}
}
