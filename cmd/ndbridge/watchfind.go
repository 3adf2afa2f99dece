package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/watch"
)

func newWatcher(env *environ) *watcher {
	return &watcher{
		env: env, target: target{attaches: true}, raised: make(chan struct{}), posts: newPosts(env),
		sessions: map[string]*hostplugin.Session{}, arrays: map[string]*looks.Arrays{}, tried: map[string]int{},
		found: map[wanted]map[string]bool{}, once: map[wanted]map[string]bool{}, ever: map[string]bool{},
	}
}

// find adds the arrays that there are now, and reports whether there are new ones, none yet, or such as another search has to confirm.
func (w *watcher) find(ctx context.Context, sampler *watch.Sampler, one wanted) bool {
	all := w.namesOf(ctx, one.program, one.name)
	prefix := strings.TrimSuffix(one.label, one.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found[one] == nil {
		w.found[one] = make(map[string]bool)
	}
	known := w.found[one]
	before, again := len(known), false
	lasting := make(map[string]bool) // of those that are watched
	if one.name == "" {
		for name, lasts := range sampler.Lasting() {
			if name, ours := strings.CutPrefix(name, prefix); ours && known[name] {
				lasting[name] = lasts
			}
		}
		all, again = w.confirmed(one, all, lasting)
	}
	for _, a := range all {
		a.rename(lasting)
		if array, err := w.arrays[one.program].Array(a.name); err == nil {
			known[a.name] = true
			array.Name, array.Passing = prefix+a.name, true
			var also, others []string
			for _, name := range a.also {
				also = append(also, prefix+name)
				if known[name] && !w.asked(prefix+name) {
					others = append(others, prefix+name)
				}
			}
			if one.name == "" {
				sampler.Remove(others...)
			}
			sampler.Add(array)
			sampler.Also(array.Name, also)
		}
	}
	return before == 0 || len(known) > before || again
}

// confirmed leaves out variables of calls that are not watched, until a second search finds them: most such calls end soon. again says that there
// are some that no search has found before. The caller holds the lock.
func (w *watcher) confirmed(one wanted, all []named, watched map[string]bool) (kept []named, again bool) {
	before := w.once[one]
	w.once[one] = make(map[string]bool)
	for _, a := range all {
		path, err := names.Parse(a.name)
		_, is := watched[a.name]
		if is || before[a.name] || err == nil && path.Of == (names.Function{}) {
			kept = append(kept, a)
			continue
		}
		w.once[one][a.name] = true
		again = again || !w.ever[a.name]
		w.ever[a.name] = true
	}
	return kept, again
}

// asked reports whether the user has given this name. The caller holds the lock.
func (w *watcher) asked(label string) bool {
	return slices.ContainsFunc(w.wanted, func(one wanted) bool { return !one.several() && one.label == label })
}

// maxWatched is how many arrays are watched if none are named.
const maxWatched = 1024

// named is an array by its names.
type named struct {
	name string
	also []string
}

// rename has an array keep the name by which it is known, if that lasts: the best name may be one of a function that is called now.
func (a *named) rename(lasting map[string]bool) {
	if lasting[a.name] {
		return
	}
	if i := slices.IndexFunc(a.also, func(name string) bool { return lasting[name] }); i >= 0 {
		a.name, a.also[i] = a.also[i], a.name
	}
}

// namesOf gives the arrays that a pattern means now, or all if it is "". An error is there the next time, too, and there are no names then.
func (w *watcher) namesOf(ctx context.Context, program, pattern string) (all []named) {
	s := w.sessions[program]
	if pattern != "" {
		names, _ := s.Names(ctx, pattern)
		for _, name := range names {
			all = append(all, named{name: name})
		}
		return all
	}
	found, err := looks.Search(ctx, s, contract.Search{Pattern: names.Every, Limit: maxWatched})
	if errors.Is(err, core.ErrUnsupported) {
		found.Entries, _ = looks.Variables(ctx, s)
	}
	for _, e := range found.Entries {
		if e.Err == nil && len(all) < maxWatched {
			all = append(all, named{e.Name, slices.Clone(e.Also)})
		}
	}
	return all
}
