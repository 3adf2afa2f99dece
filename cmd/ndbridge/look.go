package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/cmd/ndbridge/internal/looks"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// publishedInterval is how often a program is asked whether it has published what is wanted. There is
// no news of that to wait for.
const publishedInterval = 100 * time.Millisecond

// session is what the commands need of a hostplugin.Session.
type session interface {
	View(ctx context.Context, name string, opts ...hostplugin.ViewOption) (*core.View, error)
	Arrays(ctx context.Context) iter.Seq2[contract.Entry, error]
	Children(ctx context.Context) ([]hostplugin.Child, error)
	Producer() contract.Producer
	Wait(ctx context.Context) error
	ExitStatus(ctx context.Context) (int, syscall.Signal, error)
	Close() error
}

// looker starts programs and waits until their arrays are worth looking at.
type looker struct {
	env      *environ
	programs []hostplugin.Program
	target   *target
	host     *hostplugin.Host
	bounds   bounds
	output   [2]*lines // of the programs: standard output and standard error
}

// newLooker makes a host of a configuration. What programs print goes to standard error, each line
// marked, so that standard output holds nothing but what was asked for.
func newLooker(env *environ, cfg hostplugin.Config, t *target, b bounds, level slog.Level) (*looker, error) {
	l := &looker{env: env, programs: cfg.Programs, target: t, bounds: b}
	for i := range l.output {
		l.output[i] = newLines(env.stderr, "| ")
	}
	var err error
	l.host, err = newHost(env, cfg, level, l.output[0], l.output[1])
	return l, err
}

// newHost makes a host of a configuration, whose programs print to these.
func newHost(env *environ, cfg hostplugin.Config, level slog.Level, stdout, stderr io.Writer) (*hostplugin.Host, error) {
	cfg.Logger = logger(env, level)
	for i := range cfg.Programs {
		cfg.Programs[i].Stdout, cfg.Programs[i].Stderr = stdout, stderr
	}
	return hostplugin.New(cfg)
}

func logger(env *environ, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: level}))
}

// close ends all programs.
func (l *looker) close() {
	_ = l.host.Close() // the log says if the program had to be killed
	l.flush()
}

// flush writes what the programs have printed without the end of a line.
func (l *looker) flush() {
	for _, lines := range l.output {
		lines.Flush()
	}
}

// open starts a program and waits until its script has ended, all of the names are published, or the
// user's patience is at its end: then it still runs. An error is that of the program as a whole.
func (l *looker) open(ctx context.Context, program string, names []string) (s session, runs bool, err error) {
	l.env.stderr.Progress("starting %s", program)
	s, err = l.target.open(ctx, l.host, program)
	if err != nil {
		return nil, false, l.deadline(err, program, "")
	}
	if l.target.attach != "" {
		return s, true, nil
	}
	if !l.isPython(program) {
		return s, false, nil // an ordinary plugin has its arrays from the start
	}
	l.env.stderr.Progress("%s is running", program)
	if runs, err = settle(ctx, s, names, l.bounds.patience); err != nil {
		_ = s.Close() // what the program said about the error is read then
		l.flush()
		if errors.Is(err, context.DeadlineExceeded) {
			err = &core.Error{
				Op: "wait", Program: program, Kind: context.DeadlineExceeded,
				Err: fmt.Errorf("the program still runs after %s", l.bounds.timeout), Remedy: "raise --timeout, or give less --patience, after which " +
					"arrays of a program that runs are looked at",
			}
		}
		return nil, false, err
	}
	return s, runs, nil
}

func (l *looker) isPython(program string) bool {
	for _, p := range l.programs {
		if p.Name == program {
			return p.Script != "" || p.Module != ""
		}
	}
	return false
}

// noArrays says that a program has none, and what else it may have.
func (l *looker) noArrays(program string, runs bool) error {
	text := program + " has no arrays"
	switch {
	case runs:
		text += " yet: it still runs, and --patience says how long to wait; variables of functions are listed while they run on " +
			"the main thread"
	case l.isPython(program):
		text += " in global variables, and has published none; variables of functions are gone with them: look while it still " +
			"runs, with less --patience, or publish them with ndbridge.publish"
	}
	_, err := fmt.Fprintln(l.env.stderr, text)
	return err
}

// settle waits until the arrays of a program are likely to be complete, and reports whether it still runs. The user's patience
// begins when the program has imported its modules, which may take a few times as long.
func settle(ctx context.Context, s session, names []string, patience time.Duration) (runs bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Wait(waiting) }()
	finished := false
	defer func() {
		cancel()
		if !finished {
			<-ended
		}
	}()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	begun, importing := time.Now(), false
	ask := time.NewTicker(publishedInterval)
	defer ask.Stop()
	for {
		select {
		case err := <-ended:
			finished = true
			return false, err
		case <-enough.C:
			return true, nil
		case <-ask.C:
			if allPublished(ctx, s, names) {
				return true, nil
			}
			if importing = imports(ctx, s, importing); importing && time.Since(begun) < importsTake*patience {
				enough.Reset(patience)
			}
		}
	}
}

// importsTake is how many times the user's patience imports may take.
const importsTake = 10

// imports reports whether the program imports modules; if it is too busy to answer, whether it did.
func imports(ctx context.Context, s session, did bool) bool {
	ctx, cancel := context.WithTimeout(ctx, publishedInterval)
	defer cancel()
	found, err := looks.Search(ctx, s, contract.Search{Pattern: "*", Limit: 1})
	if errors.Is(err, context.DeadlineExceeded) {
		return did
	}
	return err == nil && found.Importing
}

// allPublished reports whether the program has published all names. It does not wait for a program that
// is too busy to answer.
func allPublished(ctx context.Context, s session, names []string) bool {
	if len(names) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, publishedInterval)
	defer cancel()
	var published []string
	for entry, err := range s.Arrays(ctx) {
		if err != nil {
			return false
		}
		if entry.Published {
			published = append(published, entry.Name)
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(published, name) })
}

// view takes a view. In a program that runs already a name that is not there within the user's patience is not awaited any longer.
func (l *looker) view(ctx context.Context, s session, name string, opts []hostplugin.ViewOption) (*core.View, error) {
	if l.target.attach == "" {
		return s.View(ctx, name, opts...)
	}
	soon, cancel := context.WithTimeout(ctx, l.bounds.patience)
	defer cancel()
	array, err := s.View(soon, name, opts...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s.View(ctx, name, append(slices.Clip(opts), hostplugin.NoWait())...)
	}
	return array, err
}

// below says in an error about a name that is no array which arrays it leads to, or means as a pattern.
func below(ctx context.Context, s session, name string, err error) error {
	const few = 3
	said, ok := errors.AsType[*core.Error](err)
	pattern, which := looks.Below(name), "below it"
	switch {
	case !ok || said.Quirk != "":
		return err
	case errors.Is(err, core.ErrConfig) && names.IsPattern(name):
		pattern, which = name, "that it means"
	case !errors.Is(err, core.ErrUnsupported):
		return err
	}
	found, _ := looks.Search(ctx, s, contract.Search{Pattern: pattern, Limit: few}) // the error of the name says more
	var all []string
	for _, e := range found.Entries {
		if e.Err == nil && e.Name != name {
			all = append(all, e.Name)
		}
	}
	if len(all) == 0 {
		return err
	}
	named := *said
	named.Remedy = "name one of the arrays " + which + ": " + strings.Join(all, ", ")
	if found.More > 0 {
		named.Remedy += fmt.Sprintf(" and %d more; ndbridge ls --deep lists all", found.More)
	}
	return &named
}

// deadline explains the end of --timeout; other errors stay as they are.
func (l *looker) deadline(err error, program, name string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &core.Error{
		Op: "view", Program: program, Object: name, Kind: context.DeadlineExceeded,
		Err:    fmt.Errorf("no answer within %s", l.bounds.timeout),
		Remedy: "raise --timeout if the program is only slow",
	}
	if name != "" {
		e.Err = fmt.Errorf("the program still runs and has no array of that name after %s", l.bounds.timeout)
		e.Remedy = "raise --timeout, or look with 'ndbridge ls' which arrays it has"
	}
	said, _ := errors.AsType[*core.Error](err)
	if said != nil && said.Remedy != "" {
		e.Remedy = said.Remedy
	}
	if said != nil && said.Op == "attach" && said.Err != nil { // the program has not begun, say
		e.Err = fmt.Errorf("%w: %w", e.Err, said.Err)
	}
	return e
}

// wanted is one array of one program.
type wanted struct {
	program, name string
	label         string // what the user called it
}

// choose finds the programs that names belong to. A name is "program/array", or, with one program, just
// the array.
func choose(cfg hostplugin.Config, program string, names []string) ([]wanted, error) {
	var known []string
	for _, p := range cfg.Programs {
		known = append(known, p.Name)
	}
	single := program
	if single == "" && len(known) == 1 {
		single = known[0]
	}
	if program != "" && !slices.Contains(known, program) {
		return nil, usagef("--program %s: the configuration has %s", program, list(known))
	}
	var all []wanted
	for _, name := range names {
		w := wanted{program: single, name: name, label: name}
		if before, after, ok := strings.Cut(name, "/"); ok && slices.Contains(known, before) && (program == "" || program == before) {
			w.program, w.name = before, after
		}
		switch {
		case w.program == "":
			return nil, usagef("%s: of which program? Say PROGRAM/%s or --program; the configuration has %s", name, name, list(known))
		case w.name == "":
			return nil, usagef("%q: the array's name is missing", name)
		}
		all = append(all, w)
	}
	if len(names) == 0 {
		if single == "" {
			return nil, usagef("which program? Say --program; the configuration has %s", list(known))
		}
		all = append(all, wanted{program: single})
	}
	return all, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "no programs"
	}
	return strings.Join(names, ", ")
}

// each goes through what is wanted, program by program in the order in which they are named first, and
// calls f with a session for each array. A program without a named array stands for all that it has. The arrays that are there come
// first: one for which f returns false, as it is not there yet, comes again behind the others, and wait is set then.
func (l *looker) each(ctx context.Context, all []wanted, f func(s session, w wanted, wait bool, err error) bool) {
	for len(all) > 0 {
		program := all[0].program
		var mine, others []wanted
		var names []string
		for _, w := range all {
			if w.program != program {
				others = append(others, w)
				continue
			}
			mine = append(mine, w)
			if w.name != "" {
				names = append(names, w.name)
			}
		}
		all = others
		l.program(ctx, program, mine, names, f)
	}
}

// program carries out each for one program.
func (l *looker) program(
	ctx context.Context, program string, mine []wanted, names []string, f func(s session, w wanted, wait bool, err error) bool,
) {
	s, runs, err := l.open(ctx, program, names)
	if err == nil {
		defer s.Close() //nolint:errcheck // the log says if the program had to be killed
		if len(names) == 0 {
			mine, err = l.everything(ctx, s, program, runs)
		}
	}
	var late []wanted
	for _, w := range mine {
		if !f(s, w, len(mine) == 1, err) {
			late = append(late, w)
		}
	}
	for _, w := range late {
		f(s, w, true, err)
	}
}

// everything lists all arrays of a program. If the listing fails, the program itself stands for them.
func (l *looker) everything(ctx context.Context, s session, program string, runs bool) ([]wanted, error) {
	var all []wanted
	for entry, err := range s.Arrays(ctx) {
		if err != nil {
			return []wanted{{program: program}}, l.deadline(err, program, "")
		}
		all = append(all, wanted{program: program, name: entry.Name, label: entry.Name})
	}
	if len(all) == 0 {
		return nil, l.noArrays(program, runs)
	}
	return all, nil
}
