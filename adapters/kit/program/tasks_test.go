package program_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Coroutines of tasks that wait are found by the task's name, also those that others wait for.
func TestLocalsOfTasks(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, triggers+`
import asyncio
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
`, programtest.Options{Python: python})
		p.Said(t, "ready")
		for name, want := range map[string]float64{
			`load(task="first").x`: 1, `load(task="second").x`: 2, `fetch(task="second").y`: 12, `fetch(task="first").y`: 11,
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
		} {
			_, err := p.View(t, name, contract.Request{NoWait: true})
			wants(t, name, err, core.ErrNotFound, texts...)
		}
		trigger(t, p, "end")
		p.Finish(t)
		_, err := p.View(t, `load(task="first").x`, contract.Request{})
		wants(t, "after the end", err, core.ErrNotFound, "no asyncio task")
	})
}
