package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// statusAlarm is the exit status of "watch --exit" after an alarm.
const statusAlarm = 3

// watcher carries out "ndbridge watch".
type watcher struct {
	env    *environ
	target target

	interval time.Duration
	budget   float64 // per cent
	exact    bool
	rounds   int
	step     string
	alarms   []string
	exit     bool
	webhook  string
	metrics  string
	json     bool
	colour   string

	parsed   []watch.Alarm
	program  string        // that is watched; "" if there are several
	raised   chan struct{} // closed at the first alarm, with --exit
	first    *watch.Event  // set before
	posts    posts
	sessions map[string]*hostplugin.Session
	arrays   map[string]*looks.Arrays
	wanted   []wanted
	counter  *looks.Counter // nil: no step is watched

	tried map[string]int // at how many looks at a name it was last asked whether it leads to arrays

	mu    sync.Mutex
	found map[wanted]map[string]bool // the arrays of what means several
	once  map[wanted]map[string]bool // variables of calls that the last search has found, and are not watched yet
	ever  map[string]bool            // those that any search has found
}

func newWatch(env *environ) *cobra.Command {
	w := newWatcher(env)
	cmd := &cobra.Command{
		Use:   "watch [flags] [PROGRAM/]NAME... [-- ARGUMENT...]",
		Short: "Watch arrays of a program: statistics, their history, and alarms",
		Long: `watch runs a program, or attaches to one that runs already (--attach), and looks at arrays again and again: mean, deviation, norm,
extremes, NaN and infinities, with a small histogram and the history of the norm. A NAME may be a pattern, such as
model.*.weight, or that of one of Python's own numbers, whose value it shows. A NAME that is no array but leads to some, such as
model, means all of them, as model.** does. Without a NAME it watches all arrays that the program has. Those that come later are found, too. It ends
with the program's script.

Looks take no more than --budget of the time of one core. Large arrays are sampled: each look reads other elements, until
all were read. What is drawn in a terminal is printed as lines, one for each look, if standard output is none, or with
--json as objects, one a line.

An alarm is [PATTERN:]FIGURE[OP NUMBER], where * in PATTERN stands for any characters of a name. FIGURE is nan, inf, zero,
negative, positive (shares between 0 and 1), min, max, absmax, mean, std, norm, or stale: the time without a change. OP is
<, <=, > or >=. Without PATTERN it is of all arrays, and nan of Python's own numbers, too. With --step, alarms say the step at which they were raised.

The exit status is 0 when the script has ended well, or a program that was attached to is gone; 1 if the script failed, or no NAME or
one of them led to no array that could be looked at; 2 if the command line makes no sense; 3 after an alarm with --exit; and 130 if it was interrupted.`,
		Example: `  ndbridge watch --attach trainer 'main().model.weight'
  ndbridge watch --script train.py --step step --alarm nan --alarm 'norm>100' --exit weights grads
  ndbridge watch --attach trainer --alarm 'grad*: stale>30s' --webhook https://chat.example.org/hook
  ndbridge watch --attach trainer --metrics 127.0.0.1:9400 --json > looks.jsonl`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: env.command(func(cmd *cobra.Command, args []string) error {
			names, extra := split(cmd, args)
			return w.run(cmd.Context(), names, extra)
		}),
	}
	w.target.define(cmd)
	f := cmd.Flags()
	f.DurationVar(&w.interval, "interval", watch.DefaultInterval, "look at each array once in this `time`, if the budget allows it")
	f.Float64Var(&w.budget, "budget", 100*watch.DefaultBudget, "how many `percent` of one core's time looks may take")
	f.BoolVar(&w.exact, "exact", false, "read all elements with each look, always; looks become rarer instead")
	f.IntVar(&w.rounds, "rounds", 0, "end after this `number` of looks at each array")
	f.StringVar(&w.step, "step", "", "the `name` of the program's count of its steps: a number, or an array of one element")
	f.StringArrayVar(&w.alarms, "alarm", nil, "raise an alarm on this `condition`, such as nan or 'norm>100'; may be given again")
	f.BoolVar(&w.exit, "exit", false, "end after the first alarm, with status 3 and one line that says what happened")
	f.StringVar(&w.webhook, "webhook", "", "post each alarm to this `URL`, as JSON")
	f.StringVar(&w.metrics, "metrics", "", "serve /metrics for Prometheus, and /stats.json, at this `address` of this machine")
	f.BoolVar(&w.json, "json", false, "print one JSON object a line: each look, and each alarm")
	f.StringVar(&w.colour, "color", string(render.Auto), "draw in colours: auto, always, never")
	mustComplete(cmd.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (w *watcher) check() error {
	for _, text := range w.alarms {
		a, err := watch.ParseAlarm(text)
		if err != nil {
			return usagef("--alarm %s: %w", text, err)
		}
		w.parsed = append(w.parsed, a)
	}
	switch {
	case w.interval <= 0:
		return usagef("--interval must be positive")
	case w.budget <= 0 || w.budget > 100:
		return usagef("--budget %v: expected more than 0 and at most 100 per cent", w.budget)
	case w.rounds < 0:
		return usagef("--rounds must not be negative")
	case w.exit && len(w.alarms) == 0:
		return usagef("--exit needs an --alarm")
	case w.webhook != "" && len(w.alarms) == 0:
		return usagef("--webhook needs an --alarm")
	case w.webhook != "" && !strings.HasPrefix(w.webhook, "http://") && !strings.HasPrefix(w.webhook, "https://"):
		return usagef("--webhook %s: expected an http or https URL", w.webhook)
	}
	if err := checkStep(w.step); err != nil {
		return err
	}
	return checkColour(w.colour)
}

func (w *watcher) run(ctx context.Context, names, extra []string) error {
	if err := w.check(); err != nil {
		return err
	}
	level, err := w.target.level()
	if err != nil {
		return err
	}
	cfg, err := w.target.load(names, extra)
	if err != nil {
		return err
	}
	all, err := choose(cfg, w.target.program, names)
	if err != nil {
		return err
	}
	l, err := newLooker(w.env, cfg, &w.target, bounds{}, level)
	if err != nil {
		return err
	}
	defer l.close()
	return w.watch(ctx, l, all)
}

// watch starts the programs and watches their arrays until they have ended.
func (w *watcher) watch(ctx context.Context, l *looker, all []wanted) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.wanted = all
	ended := make(chan error, len(all))
	for _, one := range all {
		if w.sessions[one.program] != nil {
			continue
		}
		w.env.stderr.Progress("starting %s", one.program)
		s, err := l.target.open(ctx, l.host, one.program)
		if err != nil {
			return err
		}
		defer s.Close() //nolint:errcheck // the log says if the program had to be killed
		w.sessions[one.program], w.arrays[one.program] = s, looks.Of(s)
		go func() { ended <- s.Wait(ctx) }()
	}
	w.env.stderr.Stop()
	if len(w.sessions) == 1 {
		w.program = all[0].program
	}
	out, err := w.sampler(ctx, cancel)
	if err != nil {
		return err
	}
	served, err := w.serve(ctx, out.sampler)
	if err != nil {
		return err
	}
	defer served()
	defer cancel()
	return w.until(ctx, cancel, out, ended)
}

// sampler makes what looks at all that is wanted, and what shows it.
func (w *watcher) sampler(ctx context.Context, cancel context.CancelFunc) (*watchOutput, error) {
	out := w.output(cancel)
	opts := watch.Options{
		Interval: w.interval, Budget: w.budget / 100, Exact: w.exact, Bins: stats.Auto, Alarms: w.parsed, Numbers: w.numbers(out),
		Looked: func() {
			w.lead(ctx, out.sampler)
			out.looked()
		},
		Raised: func(e watch.Event) {
			out.alarms = append(out.alarms, e)
			w.alarm(ctx, e)
		},
	}
	if w.step != "" {
		var err error
		if w.counter, err = looks.NewCounter(w.sessions[w.wanted[0].program], w.step); err != nil {
			return nil, err
		}
		opts.Step = w.counter.Count
	}
	out.sampler = watch.New(opts)
	for _, one := range w.wanted {
		if one.several() {
			go w.several(ctx, out.sampler, one)
			continue
		}
		array, err := w.arrays[one.program].Array(one.name)
		if err != nil {
			return nil, err
		}
		array.Name = one.label
		out.sampler.Add(array)
		if !w.json { // which says so of each look
			w.absent(ctx, out.sampler, one)
		}
	}
	return out, nil
}

// serve serves metrics, if that is asked for, until ctx ends; done waits for that.
func (w *watcher) serve(ctx context.Context, sampler *watch.Sampler) (done func(), err error) {
	var serving sync.WaitGroup
	if w.metrics == "" {
		return serving.Wait, nil
	}
	listener, err := watch.Listen(ctx, w.metrics)
	if err != nil {
		return nil, usagef("--metrics: %w", err)
	}
	_, _ = fmt.Fprintf(w.env.stderr, "serving http://%s/metrics and /stats.json\n", listener.Addr())
	serving.Go(func() {
		if err := watch.Serve(ctx, listener, sampler.Handler()); err != nil {
			w.env.report(err)
		}
	})
	return serving.Wait, nil
}

// until runs the sampler until the programs have ended, or there is another reason to end.
func (w *watcher) until(ctx context.Context, cancel context.CancelFunc, out *watchOutput, ended <-chan error) error {
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	finish := out.begin(ctx, cancel)
	defer finish()
	looking := begun(func() { _ = out.sampler.Run(sampling) }) // its error is that of sampling
	var failed error
	gone := false
	for running := len(w.sessions); running > 0; {
		select {
		case err := <-ended:
			running--
			gone = gone || err != nil
			switch {
			case err == nil || ctx.Err() != nil:
			case w.target.attach != "" && errors.Is(err, core.ErrUnavailable): // how it ended is not for us to judge
				_, _ = fmt.Fprintf(w.env.stderr, "ndbridge: %s\n", prose.Line(err.Error()))
			default:
				failed = errors.Join(failed, err)
			}
		case <-w.raised:
			running = 0
		case <-out.enough:
			running = 0
		case <-ctx.Done():
			running = 0
		}
	}
	if gone && ctx.Err() == nil && !w.over(out) {
		w.leave(out.sampler)
	} else {
		stop()
	}
	if !awaits(ctx, looking) {
		return &statusError{statusInterrupted}
	}
	if !gone && ctx.Err() == nil && !w.over(out) && !awaits(ctx, begun(func() { w.lookOnce(ctx, out.sampler) })) {
		return &statusError{statusInterrupted}
	}
	finish()
	var unprinted error
	if !awaits(ctx, begun(func() { unprinted = out.last() })) {
		return &statusError{statusInterrupted}
	}
	w.posts.end()
	w.reportStep()
	switch {
	case unprinted != nil:
		return unprinted
	case w.exit && w.first != nil:
		return &statusError{statusAlarm}
	case out.quit():
		return nil
	case ctx.Err() != nil:
		return &statusError{statusInterrupted}
	case failed != nil:
		return failed
	}
	return w.unseen(out.sampler.State())
}

// leave has arrays looked at once more as a program that has failed, or is gone, has left them.
func (w *watcher) leave(sampler *watch.Sampler) {
	for _, a := range w.arrays {
		a.Leave()
	}
	if w.counter != nil {
		w.counter.Leave()
	}
	sampler.Finish()
}

// lookOnce looks at what a script has left.
func (w *watcher) lookOnce(ctx context.Context, sampler *watch.Sampler) {
	for _, one := range w.wanted {
		if one.several() {
			w.find(ctx, sampler, one) // it may have ended before anybody asked it again
		}
	}
	plain := w.plain()
	_ = sampler.Once(ctx) // errors are those of its arrays
	if w.plain() < plain {
		_ = sampler.Once(ctx) // at those that names led to
	}
}

// begun calls f; the channel is closed when it has returned.
func begun(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// awaits waits until done, and reports false if it is in vain: after the end of ctx nobody takes what is printed, such as a
// pager that has enough.
func awaits(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// over reports whether there is nothing more to look for.
func (w *watcher) over(out *watchOutput) bool {
	select {
	case <-w.raised:
		return true
	case <-out.enough:
		return true
	default:
		return false
	}
}

// alarm tells of an alarm. It is called by one goroutine at a time.
func (w *watcher) alarm(ctx context.Context, e watch.Event) {
	if w.webhook != "" && (w.first == nil || !w.exit) {
		w.posts.post(context.WithoutCancel(ctx), w.webhook, w.program, e)
	}
	if w.first != nil {
		return
	}
	if w.first = &e; w.exit {
		close(w.raised)
	}
}
