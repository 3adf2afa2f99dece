package main

import (
	"context"
	"errors"
	"maps"
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
		found: map[wanted]map[string]bool{}, doubted: map[wanted]int{}, once: map[wanted]map[string]bool{}, ever: map[string]bool{}, unlisted: map[string]bool{},
	}
}

// find adds the arrays that there are now, and reports whether there are new ones, none yet, or such as another search has to confirm.
func (w *watcher) find(ctx context.Context, sampler *watch.Sampler, one wanted) bool {
	all, seen := w.namesOf(ctx, one.program, one.name)
	prefix := strings.TrimSuffix(one.label, one.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found[one] == nil {
		w.found[one] = make(map[string]bool)
	}
	known := w.found[one]
	before, again := len(known), false
	if one.name == "" {
		lasting := make(map[string]bool) // of those that are watched
		for name, lasts := range sampler.Lasting() {
			if name, ours := strings.CutPrefix(name, prefix); ours && known[name] {
				lasting[name] = lasts
			}
		}
		doubted := w.doubts(one, all, seen, lasting)
		all, again = w.confirmed(one, all, lasting, doubted)
		for i := range all {
			all[i].rename(lasting)
		}
	}
	for _, a := range all {
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

// asked reports whether the user has given this name. The caller holds the lock.
func (w *watcher) asked(label string) bool {
	return slices.ContainsFunc(w.wanted, func(one wanted) bool { return !one.several() && one.label == label })
}

// mostDoubted is how many searches in a row are doubted: names that they miss may be such as searches do not tell any more.
const mostDoubted = 5

// doubts reports whether a search has missed arrays that are there: on a busy machine it may not come to the variables of a function. What these
// hold it then finds by other names, of which it does not know that they are others. That is not so after the script's end. The caller holds the lock.
func (w *watcher) doubts(one wanted, all []named, seen extent, lasting map[string]bool) bool {
	there := make(map[string]bool)
	for _, a := range all {
		there[a.name] = true
		for _, name := range a.also {
			there[name] = true
		}
	}
	missed, failed := make(map[string]bool), seen == nothing && len(w.found[one]) > 0
	for name, lasts := range lasting {
		switch {
		case there[name]:
			delete(w.unlisted, name)
		case seen == everything && lasts && !w.unlisted[name]:
			missed[name] = true
		}
	}
	if len(missed) == 0 && !failed || w.ended {
		w.doubted[one] = 0
		return false
	}
	if w.doubted[one] == mostDoubted {
		w.doubted[one] = 0
		maps.Copy(w.unlisted, missed)
		return false
	}
	w.doubted[one]++
	return true
}

// confirmed leaves out arrays that are new, until a second search finds them: a search of a busy program may find an array by two names, of which one
// is a variable of a function that is called now. again says that there are such as should be searched for soon. The caller holds the lock.
func (w *watcher) confirmed(one wanted, all []named, lasting map[string]bool, doubted bool) (kept []named, again bool) {
	if len(w.found[one]) == 0 || w.ended {
		return all, false
	}
	watched := func(name string) bool { _, ok := lasting[name]; return ok }
	before, now := w.once[one], make(map[string]bool)
	again = doubted
	for _, a := range all {
		switch {
		case watched(a.name) || slices.ContainsFunc(a.also, watched) || before[a.name] && !doubted:
			kept = append(kept, a)
		default:
			now[a.name] = true
			again = again || !w.ever[a.name] // once for each: the variables of functions come and go
			w.ever[a.name] = true
		}
	}
	if !doubted {
		w.once[one] = now
	}
	return kept, again
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

// extent is how much of a program was searched.
type extent int

const (
	everything extent = iota
	something         // there are more arrays than are searched for, or the program cannot be searched
	nothing           // the search failed
)

// namesOf gives the arrays that a pattern means now, or all if it is "".
func (w *watcher) namesOf(ctx context.Context, program, pattern string) (all []named, seen extent) {
	s := w.sessions[program]
	if pattern != "" {
		names, _ := s.Names(ctx, pattern) // an error is there the next time, too, and there are no names then
		for _, name := range names {
			all = append(all, named{name: name})
		}
		return all, everything
	}
	variables, _ := looks.Variables(ctx, s)
	found, err := looks.Search(ctx, s, contract.Search{Pattern: names.Every, Limit: maxWatched})
	for _, e := range looks.Join(found, variables, maxWatched).Entries {
		if e.Err == nil {
			all = append(all, named{e.Name, slices.Clone(e.Also)})
		}
	}
	switch {
	case errors.Is(err, core.ErrUnsupported) || found.Partial || found.More > 0:
		seen = something
	case err != nil:
		seen = nothing
	}
	return all, seen
}
