package hostplugin

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
)

// Group is several names of one program that are looked at together: one question to the program, answered
// under one hold of Python's lock, instead of one for each. The group owns its views: the next Refresh or Next
// closes those that it replaces, and Close closes all. Its methods are safe for concurrent use, but they
// exclude each other, and whoever uses the views meanwhile must not be surprised by their being replaced.
type Group struct {
	session *Session
	names   []string // as they were given
	open    bool     // patterns among them have yet to be looked up

	mu    sync.Mutex
	group *leases.Group
	index map[string]int

	ending  sync.Mutex // taken after mu, and by Close before it
	closed  bool
	waiting context.CancelCauseFunc // of the call that waits now, or nil
}

// Group prepares names to be looked at together. The arrays need not exist yet. The caller closes the group,
// unless it closes the session. The error wraps core.ErrUnavailable, core.ErrClosed, or core.ErrConfig for a
// name that is there twice, perhaps in two spellings.
//
// A pattern, as [Session.Names] takes it, stands for all names that it means when the group is looked at first; a name that is
// there twice then counts once. If it means none, that look fails with core.ErrNotFound, and the next one tries again.
func (s *Session) Group(arrays ...string) (*Group, error) {
	const op = "group"
	if err := s.alive(op, ""); err != nil {
		return nil, err
	}
	g := &Group{session: s, names: arrays}
	if g.open = s.launch.program.python() && slices.ContainsFunc(arrays, names.IsPattern); g.open {
		g.group = s.leases.Group(nil)
		return g, nil
	}
	if err := g.prepare(op, arrays, false); err != nil {
		return nil, err
	}
	return g, nil
}

// prepare makes names the group's. A name that is there twice is an error, unless it may be.
func (g *Group) prepare(op string, arrays []string, twice bool) error {
	s := g.session
	index := make(map[string]int, len(arrays))
	var sources []*leases.Source
	seen := make(map[string]bool, len(arrays))
	for _, name := range arrays {
		one := s.spelling(name)
		if seen[one] && twice {
			continue
		}
		if seen[one] {
			return s.wrap(op, name, &core.Error{Kind: core.ErrConfig, Err: errors.New("the name is there twice")})
		}
		seen[one], index[name] = true, len(sources)
		sources = append(sources, &leases.Source{Name: name})
	}
	g.group, g.index = s.leases.Group(sources), index
	return nil
}

// expand looks the patterns up.
func (g *Group) expand(ctx context.Context, op string) error {
	if !g.open {
		return nil
	}
	var all []string
	for _, name := range g.names {
		if !names.IsPattern(name) {
			all = append(all, name)
			continue
		}
		found, err := g.session.Names(ctx, name)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return g.session.wrap(op, name, &core.Error{
				Kind: core.ErrNotFound, Err: errors.New("the program has no array now whose name the pattern means"),
				Remedy: "look again when the program has made them; 'ndbridge ls --deep' shows all names",
			})
		}
		all = append(all, found...)
	}
	if err := g.prepare(op, all, true); err != nil {
		return err
	}
	g.open = false
	return nil
}

// spelling gives the one spelling of what a name means to the program: d["x"] and d['x'] are one name in Python.
func (s *Session) spelling(name string) string {
	if s.launch.program.python() {
		if path, err := names.Parse(name); err == nil { // or the program says what is wrong with it
			return path.String()
		}
	}
	return name
}

// Refresh looks at all names again, and takes views of those that have none, as [Source.Refresh] does for one.
// changed is true if any view is another one now. What has not changed costs one round trip for all together,
// and some tens of nanoseconds each. The options are those of the views that are taken.
//
// The error names the first array that has one. All others are refreshed.
func (g *Group) Refresh(ctx context.Context, opts ...ViewOption) (changed bool, err error) {
	const op = "refresh"
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ready(ctx, op); err != nil {
		return false, err
	}
	if err := g.expand(ctx, op); err != nil {
		return false, err
	}
	if slices.Contains(g.group.Views, nil) { // only then it may wait for long
		var done func()
		ctx, done = g.wait(ctx)
		defer done()
	}
	changed, failed, err := g.group.Refresh(ctx, request(opts))
	if err != nil && g.isClosed() {
		return changed, g.ready(ctx, op)
	}
	if err != nil {
		return changed, g.session.wrap(op, g.group.Sources[failed].Name, err)
	}
	return changed, nil
}

// Next waits until the program has published a newer version of any of the names than the group's views are
// of, and all names are published. Then all views are of the newest versions, as they were at one moment: what
// the program publishes with one call of ndbridge.publish comes as a whole or not at all. A view whose version
// is the newest stays. The options are those of the views that are taken.
//
// When the program or its script ends, Next ends as [Source.Next] does. The errors are the same, too; they name
// an array if they concern one: the first that is not published, for instance.
func (g *Group) Next(ctx context.Context, opts ...ViewOption) error {
	const op = "next"
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ready(ctx, op); err != nil {
		return err
	}
	ctx, done := g.wait(ctx)
	defer done()
	if err := g.expand(ctx, op); err != nil {
		return err
	}
	failed, err := g.group.Next(ctx, request(opts))
	if err != nil && g.isClosed() {
		return g.ready(ctx, op)
	}
	if failed < 0 {
		return g.session.wrap(op, "", err)
	}
	return g.session.wrap(op, g.group.Sources[failed].Name, err)
}

// View gives the view of a name, or nil before the first look, after Close, and for a name that is not in the
// group. It stays the group's: it is open until the group replaces it.
func (g *Group) View(name string) *core.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, ok := g.index[name]
	if !ok {
		return nil
	}
	return g.group.Views[i]
}

// Views gives the names and views in the order in which the names were given, those that a pattern means sorted: see View.
func (g *Group) Views() iter.Seq2[string, *core.View] {
	return func(yield func(string, *core.View) bool) {
		g.mu.Lock()
		sources := g.group.Sources
		g.mu.Unlock()
		for _, s := range sources {
			if !yield(s.Name, g.View(s.Name)) {
				return
			}
		}
	}
}

// Close closes the views, and ends a call that waits: its error wraps core.ErrClosed. It is idempotent.
func (g *Group) Close() error {
	g.ending.Lock()
	g.closed = true
	if g.waiting != nil {
		g.waiting(core.ErrClosed)
	}
	g.ending.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for i, v := range g.group.Views {
		if v != nil {
			errs = append(errs, v.Close())
		}
		g.group.Views[i] = nil
	}
	return errors.Join(errs...)
}

// wait gives a context that ends with ctx and with the group, to a call that holds mu and calls done at its end.
func (g *Group) wait(ctx context.Context) (there context.Context, done func()) {
	there, cancel := context.WithCancelCause(ctx)
	g.ending.Lock()
	defer g.ending.Unlock()
	if g.closed {
		cancel(core.ErrClosed)
	}
	g.waiting = cancel
	return there, func() {
		g.ending.Lock()
		defer g.ending.Unlock()
		g.waiting = nil
		cancel(nil)
	}
}

func (g *Group) isClosed() bool {
	g.ending.Lock()
	defer g.ending.Unlock()
	return g.closed
}

func (g *Group) ready(ctx context.Context, op string) error {
	if g.isClosed() {
		return g.session.wrap(op, "", &core.Error{Kind: core.ErrClosed})
	}
	if len(g.names) == 0 {
		return g.session.wrap(op, "", &core.Error{Kind: core.ErrConfig, Err: errors.New("the group has no names")})
	}
	return g.session.ready(ctx, op, "")
}
