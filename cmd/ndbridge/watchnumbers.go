package main

import (
	"context"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// numbers gives what reads Python's own numbers among the names that the user has given: those that were numbers at the last look, and those of
// which there was no good look at an array yet.
func (w *watcher) numbers(out *watchOutput) func(ctx context.Context) map[string]watch.Number {
	return func(ctx context.Context) map[string]watch.Number { return w.readNumbers(ctx, out.sampler.State()) }
}

func (w *watcher) readNumbers(ctx context.Context, state watch.State) map[string]watch.Number {
	arrays := make(map[string]bool)
	for _, a := range state.Arrays {
		arrays[a.Name] = !a.Number && a.Error == "" && a.Looks > 0
	}
	names := make(map[string][]string) // of each program
	for _, one := range w.wanted {
		if !one.several() && !arrays[one.label] {
			names[one.program] = append(names[one.program], one.name)
		}
	}
	all := make(map[string]watch.Number)
	for program, asked := range names {
		found, _ := looks.Numbers(ctx, w.sessions[program], asked) // without it, the look at an array says what is wrong
		for _, one := range w.wanted {
			if n, ok := found[one.name]; ok && one.program == program {
				all[one.label] = n
			}
		}
	}
	return all
}
