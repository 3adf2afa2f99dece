package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

const leavesScript = triggers + `
class Box:
    pass
def tracer(frame, event, arg):
    if frame.f_code.co_name == "main": # which writes the variables that it sees into frame.f_locals, before 3.13
        len(frame.f_locals)
    return tracer
def main(box, big, cell):
    small, deleted, rebound = number(2), number(3), Box()
    shown = lambda: cell
    snapshot = locals()
    snapshot["rebound"] = "a debugger's"
    gone = []
    for o in (box, big, cell, small, deleted): gone.append(weakref.ref(o))
    del deleted, o
    if "deleted" in snapshot: del snapshot["deleted"]
    rebound = Box()
    counts = [sys.getrefcount(o) for o in (box, big, cell, small, rebound, main, number)]
    said("ready")
    events["looked"].wait()
    said(counts == [sys.getrefcount(o) for o in (box, big, cell, small, rebound, main, number)])
    said([type(snapshot["rebound"]), sorted(snapshot), [r() is None for r in gone], type(rebound), shown() is cell])
    return gone
def outermost():
    box = Box()
    box.x = number(5, 100000)
    return main(box, number(1, 100000), number(4, 100000))
before = sys.getrefcount(main.__code__)
if TRACED: sys.settrace(tracer)
gone = outermost()
sys.settrace(None)
if TRACED: gc.collect() # snapshot has itself
said([r() is None for r in gone])
said([o for o in gc.get_objects() if type(o).__name__ == "frame" and o.f_code.co_name == "main"])
said(sys.getrefcount(main.__code__) - before)
said("returned")
events["end"].wait()
`

// A look at a variable leaves nothing behind: no reference, and nothing in locals(); a program that is traced has the same
// variables with looks and without. The variables end with the function, also those that are looked at.
func TestLocalsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		for _, traced := range []string{"False", "True"} {
			script := strings.ReplaceAll(leavesScript, "TRACED", traced)
			alone := programtest.Start(t, script, programtest.Options{Python: python})
			alone.Said(t, "ready")
			trigger(t, alone, "looked")
			alone.Said(t, "returned")
			trigger(t, alone, "end")
			alone.Finish(t)
			p := programtest.Start(t, script, programtest.Options{Python: python})
			p.Said(t, "ready")
			views := lookAtLocals(t, p)
			trigger(t, p, "looked")
			p.Said(t, "returned")
			for _, v := range views { // whose memory is kept, and nothing else
				x, err := core.Slice[float64](v)
				if err != nil || x[0] != x[len(x)-1] || x[0] == 0 {
					t.Errorf("%s is %v, %v", v.Name(), x[0], err)
				}
			}
			trigger(t, p, "end")
			p.Finish(t)
			if p.Output() != alone.Output() || !strings.Contains(p.Output(), "\n[True, True, True, True, True]\n[]\n0\nreturned") {
				t.Errorf("traced %s: without looks it says\n%s", traced, alone.Output())
			}
		}
	})
}

// lookAtLocals looks again and again at what the function of leavesScript has.
func lookAtLocals(t *testing.T, p *programtest.Program) (views []*core.View) {
	t.Helper()
	for range 20 {
		for name, want := range map[string]float64{"main().big": 1, "main().small": 2, "main().cell": 4, "main().box.x": 5} {
			v, err := p.View(t, name, contract.Request{NoWait: true})
			if err != nil {
				t.Fatal(err)
			}
			x, err := core.Slice[float64](v)
			if err != nil || x[0] != want || x[len(x)-1] != want {
				t.Errorf("%s is %v, %v", name, x[0], err)
			}
			views = append(views, v)
		}
		_, err := p.View(t, "main().deleted", contract.Request{NoWait: true})
		wants(t, "deleted", err, core.ErrNotFound)
		for _, err := range p.Arrays(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	return views
}

// What is shown of a function that runs again and again belonged to one call of it, and the program's results are its own.
func TestLocalsAtFullRate(t *testing.T) {
	t.Parallel()
	const script = triggers + `
def work(i, n):
    small = number(i)
    large = number(i, 20000)
    pair = (small, small + 1)
    del small
    small = pair[0]
    return small[0] + large[-1] + pair[1][2] + n[0]
def generate():
    for i in range(10**9):
        value = number(i)
        yield value
        if events["end"].is_set(): return
def main():
    total, i, values = 0.0, 0, generate()
    for value in values:
        total += work(i, value)
        i += 1
        if i == 100: said("ready")
    assert total == 4 * i * (i - 1) / 2 + i, (total, i)
main()
`
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, script, programtest.Options{Python: python})
		p.Said(t, "ready")
		seen := make(map[string]int)
		for range 100 { // and each of them waits for a program that computes
			for _, name := range []string{"work().small", "work().large", "work().pair[1]", "work().n", "generate().value", "main().value"} {
				v, err := p.View(t, name, contract.Request{NoWait: true})
				if errors.Is(err, core.ErrNotFound) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				x, err := core.Slice[float64](v)
				if err != nil || x[0] != x[len(x)-1] || x[0] != float64(int(x[0])) || (len(x) != 4 && len(x) != 20000) {
					t.Fatalf("%s is %v, %v", name, x, err)
				}
				seen[name]++
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if seen["work().small"]+seen["work().n"] == 0 || seen["main().value"] == 0 {
			t.Errorf("little was seen: %v", seen)
		}
		trigger(t, p, "end")
		p.Finish(t)
	})
}

// A lease on a variable follows it as one on a global variable does, and waits for the function.
func TestLocalsRefresh(t *testing.T) {
	t.Parallel()
	const script = triggers + `
class Model:
    weight = property(lambda self: said("HEARD"))
def step(k):
    loss, model = number(k, 20000), Model()
    same = loss
    said("step %d" % k)
    events["rebind"].wait()
    loss = number(10 * k, 20000)
    said("rebound")
    events["return"].wait()
step(1)
said("returned")
events["again"].wait()
events["rebind"].clear()
step(2)
`
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, script, programtest.Options{Python: python})
		p.Said(t, "step 1")
		lease, err := p.Lease(t.Context(), "step().loss", contract.Request{})
		if err != nil {
			t.Fatal(err)
		}
		same, err := p.Lease(t.Context(), "step().same", contract.Request{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []contract.LeaseID{lease.ID, same.ID} {
			if _, changed, err := p.Refresh(t.Context(), id); changed || err != nil {
				t.Errorf("before anything has changed: %v, %v", changed, err)
			}
		}
		_, err = p.Lease(t.Context(), "step().model.weight", contract.Request{NoWait: true, NoCode: true})
		if err == nil || strings.Contains(p.Output(), "HEARD") {
			t.Errorf("a property has run: %v", err)
		}
		trigger(t, p, "rebind")
		p.Said(t, "rebound")
		next, changed, err := p.Refresh(t.Context(), lease.ID)
		if !changed || err != nil {
			t.Errorf("the variable was bound to another array: %v, %v", changed, err)
		}
		if _, changed, err := p.Refresh(t.Context(), same.ID); changed || err != nil {
			t.Errorf("what was not bound anew: %v, %v", changed, err)
		}
		trigger(t, p, "return")
		p.Said(t, "returned")
		_, err = p.Lease(t.Context(), "step().loss", contract.Request{NoWait: true})
		wants(t, "after its return", err, core.ErrNotFound, "step() is not running")
		trigger(t, p, "again")
		if last, changed, err := p.Refresh(t.Context(), next.ID); !changed || err != nil || last.ID == next.ID {
			t.Errorf("in the next call: %v, %v", changed, err)
		}
		trigger(t, p, "rebind")
		p.Finish(t)
	})
}
