package engine

import (
	"fmt"
	"iter"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// taskFrames gives the coroutines that an asyncio task is in, whether they run or wait, the innermost first.
func (p *Program) taskFrames(g *py.GIL, name string) (iter.Seq[*py.Frame], error) {
	var found []string
	for _, task := range tasks(g) {
		text, err := g.CallMethod(task, "get_name", nil, nil)
		if err != nil {
			return nil, err
		}
		if !g.IsStr(text) {
			continue
		}
		is, err := g.Text(text)
		if err != nil {
			continue
		}
		if is != name {
			found = append(found, is)
			continue
		}
		coroutine, err := g.CallMethod(task, "get_coro", nil, nil)
		if err != nil {
			return nil, err
		}
		if frames := coroutineFrames(g, coroutine); len(frames) > 0 { // else it is done
			return slices.Values(frames), nil
		}
	}
	return nil, &missingError{
		What:   fmt.Sprintf("the program has no asyncio task %q that is not done", name),
		Remedy: prose.Remedy(name, slices.Values(found), ""),
	}
}

// maxAwaited bounds how many coroutines that wait for each other are looked through.
const maxAwaited = 1000

// coroutineFrames gives the frames of a coroutine and of those that it waits for, the last of these first.
func coroutineFrames(g *py.GIL, o py.Object) (frames []*py.Frame) {
	for range maxAwaited {
		kind := g.Waits(o)
		if kind < 0 {
			return frames
		}
		f, err := frameOf(g, o)
		if err != nil {
			return frames
		}
		if f != nil {
			frames = slices.Insert(frames, 0, f)
		}
		if o, err = g.Attr(o, suspended[kind].awaits); err != nil {
			return frames
		}
	}
	return frames
}

// tasks gives the tasks of asyncio's own class that are not done. Python 3.8 to 3.13 have them in sets. Only asyncio itself finds
// those of Python 3.14: it is asked, for each event loop that runs.
func tasks(g *py.GIL) (all []py.Object) {
	module, ok := g.Loaded("asyncio.tasks")
	if !ok {
		return nil
	}
	for _, name := range []string{"_all_tasks", "_scheduled_tasks", "_eager_tasks"} {
		set, ok := g.Variable(module, name)
		if !ok {
			continue
		}
		key, err := g.NewKey("data")
		if err != nil {
			return nil
		}
		if data, ok := g.Follow(set, py.Step{Kind: py.StepAttribute, Class: g.Type(set), Key: key}); ok { // of a WeakSet
			set = data
		}
		all = append(all, members(g, set)...)
	}
	if inC, ok := g.Loaded("_asyncio"); ok {
		if find, ok := g.Variable(inC, "all_tasks"); ok {
			for _, loop := range runningLoops(g) {
				set, err := g.Call(find, []py.Object{loop}, nil)
				if err != nil {
					continue
				}
				all = append(all, members(g, set)...)
			}
		}
	}
	return slices.DeleteFunc(all, func(o py.Object) bool { return g.TypeName(o) != "_asyncio.Task" })
}

// members gives what is in a set, or what the weak references in it refer to.
func members(g *py.GIL, set py.Object) (all []py.Object) {
	if g.TypeName(set) != "set" {
		return nil
	}
	builtins, ok := g.Loaded("builtins")
	if !ok {
		return nil
	}
	tuple, err := g.CallMethod(builtins, "tuple", []py.Object{set}, nil)
	if err != nil {
		return nil
	}
	items, err := g.TupleItems(tuple)
	if err != nil {
		return nil
	}
	for _, o := range items {
		if name := g.TypeName(o); name == "weakref.ReferenceType" || name == "weakref" {
			if o, err = g.Call(o, nil, nil); err != nil {
				continue
			}
		}
		all = append(all, o)
	}
	return all
}

// runningLoops gives asyncio's event loops that run.
func runningLoops(g *py.GIL) (all []py.Object) {
	self, err := g.NewKey("self")
	if err != nil {
		return nil
	}
	for f := range g.Frames() {
		if f.Name() == "run_forever" && f.Module() == "asyncio.base_events" {
			if loop, ok := f.Local(self); ok {
				all = append(all, loop)
			}
		}
	}
	return all
}
