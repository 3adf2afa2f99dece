package engine_test

import (
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Coroutines of tasks that wait are found by the task's name, also those that others wait for. What variables have is found by the attributes
// that Python has for it. A look leaves nothing behind.
func TestLocalsOfTasks(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, triggers+leadsScript+`
import asyncio
def batches():
    for i in range(2):
        batch = number(i + 20)
        yield weakref.ref(batch)
    later = number(0)
def outer():
    z = number(30)
    yield from batches()
async def waits():
    w = number(40)
    await asyncio.sleep(0)
async def streams():
    v = number(50)
    yield
g, o, c, s, ended = batches(), outer(), waits(), streams(), batches()
first, _, _ = next(g), next(o), c.send(None)
try: s.asend(None).send(None)
except StopIteration: pass
for _ in ended: pass
async def load(start, free=5.0):
    x, mine = number(start), lambda: free
    await fetch(start + 10)
async def fetch(start):
    y = number(start)
    while not events["end"].is_set():
        await asyncio.sleep(0.005)
async def main():
    loop = asyncio.get_running_loop()
    jobs = []
    for i, name in enumerate(["first", "second"]):
        jobs.append(loop.create_task(load(i + 1)))
        jobs[-1].set_name(name)
    await asyncio.sleep(0)
    said("ready")
    await asyncio.gather(*jobs)
asyncio.run(main())
next(g)
said("the first batch was " + ("dropped" if first() is None else "kept"))
said("audited " + ",".join(sorted(set(audited))))
events["over"].wait()
`, programtest.Options{Python: python})
		p.Said(t, "ready")
		foundByLeads(t, p)
		for name, want := range map[string]float64{
			`load(task="first").x`: 1, `load(task="second").x`: 2, `fetch(task="second").y`: 12, `fetch(task="first").y`: 11,
			`g.gi_frame.f_locals["batch"]`: 20, `o.gi_frame.f_locals["z"]`: 30, `o.gi_yieldfrom.gi_frame.f_locals["batch"][1:]`: 20,
			`c.cr_frame.f_locals["w"]`: 40, `s.ag_frame.f_locals["v"]`: 50,
		} {
			if got := first(t, p, name); got != want {
				t.Errorf("%s begins with %v, want %v", name, got, want)
			}
		}
		for name, texts := range map[string][]string{
			`load(task="fist").x`:   {`no asyncio task "fist" that is not done`, `did you mean "first"?`},
			`load(task="first").z`:  {`load(task="first") is running, and has no local variable z`},
			`main(task="first").x`:  {`main(task="first") is not running`},
			`fetch(task="first").x`: {"no local variable x"},

			`g.gi_frame.f_locals["later"]`:     {"the variable later of g has no value now"},
			`g.gi_frame.f_locals["bath"]`:      {"g has no local variable bath", `did you mean "batch"?`},
			`g.batch`:                          {`did you mean "g.gi_frame.f_locals["batch"]"?`},
			`ended.gi_frame.f_locals["batch"]`: {"ended has ended"},
		} {
			_, err := p.View(t, name, contract.Request{NoWait: true})
			wants(t, name, err, core.ErrNotFound, texts...)
		}
		trigger(t, p, "end")
		if p.Said(t, "the first batch was "); !strings.Contains(p.Output(), "dropped") {
			t.Error("a look has kept what the generator had")
		}
		if p.Said(t, "audited "); strings.Contains(p.Output(), "audited __") {
			t.Errorf("a search has raised audit events: %s", p.Output())
		}
		if got := first(t, p, `g.gi_frame.f_locals["batch"]`); got != 21 {
			t.Errorf("the second batch begins with %v", got)
		}
		trigger(t, p, "over")
		p.Finish(t)
		_, err := p.View(t, `load(task="first").x`, contract.Request{})
		wants(t, "after the end", err, core.ErrNotFound, "no asyncio task")
	})
}
