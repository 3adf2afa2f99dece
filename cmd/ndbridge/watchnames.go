package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// checkStep refuses what is no name of a count of steps.
func checkStep(name string) error {
	if _, err := names.Parse(name); name != "" && err != nil {
		return usagef("--step %s: %w", name, err)
	}
	return nil
}

// reportStep says why no step was known, if one was asked for.
func (w *watcher) reportStep() {
	if w.counter == nil {
		return
	}
	if err := w.counter.Err(); err != nil {
		_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: --step: %s\n", prose.Line(err.Error()))
	}
}

// several reports whether what is wanted is a pattern, or all that a program has.
func (w wanted) several() bool { return w.name == "" || strings.Contains(w.name, "*") }

// plain is how many names do not mean several arrays.
func (w *watcher) plain() (n int) {
	for _, one := range w.wanted {
		if !one.several() {
			n++
		}
	}
	return n
}

// lead has names that are no arrays, but lead to some, mean all of these, as a pattern does. It is called after each round of looks, and
// asks less and less often about a name that goes on to lead to none.
func (w *watcher) lead(ctx context.Context, sampler *watch.Sampler) {
	const rarely = 64 // looks
	for _, a := range sampler.State().Arrays {
		if tried := w.tried[a.Name]; a.Looks > 0 || a.Tries <= tried+min(tried, rarely) {
			continue
		}
		i := slices.IndexFunc(w.wanted, func(one wanted) bool { return !one.several() && one.label == a.Name })
		if i < 0 {
			continue
		}
		w.tried[a.Name] = a.Tries
		one := w.wanted[i]
		below := w.namesOf(ctx, one.program, looks.Below(one.name))
		if len(below) == 0 || slices.ContainsFunc(below, func(a named) bool { return a.name == one.name }) { // an array that cannot be looked at
			continue
		}
		_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s is no array: watching those below it, as %[1]s.** does (%d now)\n", prose.Line(one.label), len(below))
		one.name, one.label = looks.Below(one.name), looks.Below(one.label)
		w.mu.Lock()
		w.wanted[i] = one
		w.mu.Unlock()
		sampler.Remove(a.Name)
		w.find(ctx, sampler, one)
		go w.several(ctx, sampler, one)
	}
}

// several adds the arrays that a pattern means, or all that a program has, and those that come: it asks as often as it
// looks at arrays, and less often the longer nothing comes.
func (w *watcher) several(ctx context.Context, sampler *watch.Sampler, one wanted) {
	const rarely = 64 // times as seldom
	wait := w.interval
	hinting, stop := context.WithCancel(ctx)
	defer stop()
	go w.later(hinting, one.program, func() bool { w.hint(hinting, one); return true })
	for {
		if w.find(ctx, sampler, one) {
			wait = w.interval
		} else {
			wait = min(2*wait, rarely*w.interval)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		case <-w.sessions[one.program].Done():
			return
		}
	}
}

// hintAfter is how many looks a name or a pattern may mean nothing before that is told.
const hintAfter = 10

// later tells something after so many looks, of which those do not count that are made while the program imports its modules, which may take a few
// times as long. tell reports false if there is nothing to tell yet.
func (w *watcher) later(ctx context.Context, program string, tell func() bool) {
	ask := time.NewTicker(w.interval)
	defer ask.Stop()
	importing := false
	for since, all := 0, 0; ; all++ {
		select {
		case <-ask.C:
		case <-ctx.Done():
			return
		case <-w.sessions[program].Done():
			return
		}
		if since++; all < importsTake*hintAfter {
			if importing = imports(ctx, w.sessions[program], importing); importing {
				since = 0
			}
		}
		if since >= hintAfter && tell() {
			return
		}
	}
}

// absent says why nothing was seen of a name, if it is so for a while. It goes on being looked for.
func (w *watcher) absent(ctx context.Context, sampler *watch.Sampler, one wanted) {
	go w.later(ctx, one.program, func() bool {
		all := sampler.State().Arrays
		i := slices.IndexFunc(all, func(a watch.Series) bool { return a.Name == one.label })
		if i < 0 || all[i].Looks > 0 {
			return true
		}
		if all[i].Error == "" || ctx.Err() != nil { // there was no look yet
			return false
		}
		_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s\n", prose.Line(all[i].Error))
		return true
	})
}

// hint says that a pattern means nothing yet, and why if that is known.
func (w *watcher) hint(ctx context.Context, one wanted) {
	if one.name == "" || !slices.Contains(w.missing(), one) {
		return
	}
	why := `no array has such a name yet; "ndbridge ls" shows those that there are`
	if _, err := w.sessions[one.program].Names(ctx, one.name); err != nil {
		why = err.Error()
	}
	if ctx.Err() == nil {
		_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s: %s\n", prose.Line(one.label), prose.Line(why))
	}
}

// missing is what means several arrays and has none yet.
func (w *watcher) missing() []wanted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.wanted), func(one wanted) bool { return !one.several() || len(w.found[one]) > 0 })
}

// unseen says which arrays there was no look at, and why. That is a failure if somebody has named one, or if there is no other.
func (w *watcher) unseen(state watch.State) error {
	say := func(text string) {
		if !w.json {
			_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s\n", prose.Line(text))
		}
	}
	named := make(map[string]bool)
	failed := true
	for _, one := range w.wanted {
		named[one.label] = !one.several()
	}
	for _, a := range state.Arrays {
		if a.Looks > 0 {
			failed = false
			continue
		}
		say(cmp.Or(a.Error, a.Name+": the program ended before the first look"))
	}
	if len(state.Arrays) == 0 {
		_, _ = fmt.Fprintln(w.env.stderr, "ndbridge: the program had no array to watch")
	}
	for _, a := range state.Arrays {
		failed = failed || a.Looks == 0 && named[a.Name]
	}
	for _, one := range w.missing() {
		if one.name != "" {
			failed = true
			_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s: no array has such a name\n", prose.Line(one.label))
		}
	}
	if failed {
		return &statusError{statusFailed}
	}
	return nil
}
