package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// look makes a name one that a sampler looks at. A name that does not exist yet is not waited for: the next look comes
// soon enough.
func look(s *hostplugin.Session, name string) (watch.Look, error) {
	source, err := s.Source(name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, v *core.View) (*core.View, error) {
		v, _, err := source.Refresh(ctx, v, hostplugin.NoWait())
		if err == nil {
			err = v.Wait(ctx)
		}
		return v, err
	}, nil
}

// stepper reads the count of a program's steps.
type stepper struct {
	session *hostplugin.Session
	name    string
	look    watch.Look
	view    *core.View
	plain   bool  // it is a number of Python's, and no array
	known   bool  // it could be read once
	err     error // why it could not be read last
}

func newStepper(s *hostplugin.Session, name string) (*stepper, error) {
	see, err := look(s, name)
	return &stepper{session: s, name: name, look: see}, err
}

// count gives the count as it is now, and nil if it cannot be read.
func (p *stepper) count(ctx context.Context) *stats.Number {
	var x float64
	if !p.plain {
		x, p.err = p.array(ctx)
	}
	if p.plain || errors.Is(p.err, core.ErrUnsupported) {
		x, p.err = p.number(ctx)
		p.plain = p.err == nil
	}
	if p.err != nil {
		return nil
	}
	p.known = true
	return new(stats.Number(x))
}

func (p *stepper) array(ctx context.Context) (float64, error) {
	v, err := p.look(ctx, p.view)
	if v != nil {
		p.view = v // the session closes it
	}
	if err != nil {
		return 0, err
	}
	sum, err := stats.Of(ctx, v, &stats.Options{Workers: 1})
	if err == nil && (sum.Finite() != 1 || sum.Len != 1) {
		err = fmt.Errorf("step %s: expected one number, got %d elements, %d of them finite", p.name, sum.Len, sum.Finite())
	}
	if err != nil {
		return 0, err
	}
	return sum.Mean, nil
}

func (p *stepper) number(ctx context.Context) (x float64, err error) {
	result, err := p.session.Value(ctx, p.name)
	if err != nil {
		return 0, err
	}
	err = result.Decode(&x)
	return x, errors.Join(err, result.Close())
}

// reportStep says why no step was known, if one was asked for.
func (w *watcher) reportStep() {
	if p := w.counted; p != nil && !p.known && p.err != nil && !errors.Is(p.err, context.Canceled) {
		_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: --step: %s\n", prose.Line(p.err.Error()))
	}
}

// several reports whether what is wanted is a pattern, or all that a program has.
func (w wanted) several() bool { return w.name == "" || strings.Contains(w.name, "*") }

// several adds the arrays that a pattern means, or all that a program has, and those that come: it asks as often as it
// looks at arrays, and less often the longer nothing comes.
func (w *watcher) several(ctx context.Context, sampler *watch.Sampler, one wanted) {
	const rarely = 64 // times as seldom
	wait := w.interval
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

// find adds the arrays that there are now, and reports whether there are new ones, or none yet.
func (w *watcher) find(ctx context.Context, sampler *watch.Sampler, one wanted) bool {
	s := w.sessions[one.program]
	names := namesOf(ctx, s, one.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found[one] == nil {
		w.found[one] = make(map[string]bool)
	}
	before := len(w.found[one])
	for _, name := range names {
		if see, err := look(s, name); err == nil {
			w.found[one][name] = true
			sampler.Add(watch.Array{Name: strings.TrimSuffix(one.label, one.name) + name, Look: see, Passing: true})
		}
	}
	return before == 0 || len(w.found[one]) > before
}

// namesOf gives the names that a pattern means now, or all if it is "".
func namesOf(ctx context.Context, s *hostplugin.Session, pattern string) []string {
	if pattern != "" {
		names, _ := s.Names(ctx, pattern) // an error is there the next time, too, and there are no names then
		return names
	}
	var names []string
	for entry, err := range s.Arrays(ctx) {
		if err == nil && entry.Err == nil {
			names = append(names, entry.Name)
		}
	}
	return names
}
