package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// How long a host waits for a version that there is, and for one that there is not.
const (
	newsBound = 20 * time.Second
	noNews    = 2 * time.Millisecond
)

// followLooker goes on with the view of its last look at a name.
type followLooker struct {
	route   string
	sources *sources
	views   map[string]*followed
	// follow goes on with f, and reports whether there is anything to say of it.
	follow func(ctx context.Context, source *hostplugin.Source, f *followed, opts []hostplugin.ViewOption) (tell bool, err error)
}

// followed is a view that a route holds.
type followed struct {
	view   *core.View // nil: none yet
	serial uint64     // of what was published, as of the last look
}

func (l *followLooker) name() string { return l.route }
func (*followLooker) gives() bool    { return true }

func (l *followLooker) reset() {
	for _, f := range l.views {
		if f.view != nil {
			f.view.Close()
		}
	}
	clear(l.views)
}

func (l *followLooker) look(ctx context.Context, names []string, how asking, use use) {
	for i, name := range names {
		source, err := l.sources.of(name)
		if err != nil {
			use(i, nil, err)
			continue
		}
		f := l.views[key(how, name)]
		if f == nil {
			f = new(followed)
			l.views[key(how, name)] = f
		}
		before := f.view
		tell, err := l.follow(ctx, source, f, how.options())
		if err != nil && f.view != before {
			err = failed("follow", "%s fails, and the view is another one: %v", l.route, err)
		}
		if tell && use(i, f.viewIf(err), err) {
			delete(l.views, key(how, name))
		}
	}
}

// viewIf gives the view if there is no error: after one it shows what was.
func (f *followed) viewIf(err error) *core.View {
	if err != nil {
		return nil
	}
	return f.view
}

// newRefreshLooker looks again by Source.Refresh.
func newRefreshLooker(s *hostplugin.Session) looker {
	l := &followLooker{route: "Source.Refresh", sources: newSources(s), views: map[string]*followed{}}
	l.follow = func(ctx context.Context, source *hostplugin.Source, f *followed, opts []hostplugin.ViewOption) (bool, error) {
		before := f.view
		next, changed, err := source.Refresh(ctx, before, opts...)
		f.view = next
		return true, sameUnless(changed, before, next, err)
	}
	return l
}

func isOpen(v *core.View) bool {
	_, _, release, err := v.Acquire()
	release()
	return err == nil
}

// sameUnless holds that a view is another one if, and only if, that is said, and that it is open.
func sameUnless(changed bool, before, next *core.View, err error) error {
	if err == nil && changed != (before != next) {
		return failed("follow", "changed is %v, the view before was %p, and is %p", changed, before, next)
	}
	if err == nil && before != nil && changed && isOpen(before) {
		return failed("follow", "the view that was replaced is open")
	}
	return err
}

// newLatestLooker looks by Source.Latest.
func newLatestLooker(s *hostplugin.Session, published serials) looker {
	l := &followLooker{route: "Source.Latest", sources: newSources(s), views: map[string]*followed{}}
	l.follow = func(ctx context.Context, source *hostplugin.Source, f *followed, opts []hostplugin.ViewOption) (bool, error) {
		before := f.view
		next, changed, err := source.Latest(ctx, before, opts...)
		f.view = next
		if published == nil {
			return true, sameUnless(changed, before, next, err)
		}
		serial, _ := published(source.Name())
		if serial == 0 {
			if errors.Is(err, core.ErrNotFound) {
				return false, nil
			}
			return true, failed("versions", "Latest of what is not published: %v", err)
		}
		if err == nil {
			f.serial = serial
		}
		return err != nil || showsNow(before, next), sameUnless(changed, before, next, err)
	}
	return l
}

// showsNow reports whether a view shows what is there, rather than, as a copy of a version that has been taken before, or
// after a fork, what was there.
func showsNow(before, v *core.View) bool { return v != before || v.Live() }

// newNextLooker looks by Source.Next: at what there is, if there is a version that it has not seen, and else for no
// longer than a moment.
func newNextLooker(s *hostplugin.Session, published serials) looker {
	l := &followLooker{route: "Source.Next", sources: newSources(s), views: map[string]*followed{}}
	l.follow = func(ctx context.Context, source *hostplugin.Source, f *followed, opts []hostplugin.ViewOption) (bool, error) {
		before, serial, sure := f.view, uint64(1), true
		if published != nil {
			serial, sure = published(source.Name())
		}
		isNews := published == nil || serial != 0 && (serial != f.serial || f.view == nil)
		next, err := nextWithin(ctx, isNews, func(ctx context.Context) (*core.View, error) { return source.Next(ctx, before, opts...) })
		f.view = next
		switch {
		case isNews && err == nil:
			f.serial = serial
			return true, sameUnless(true, before, next, nil)
		case isNews:
			return true, err
		case err == nil && !sure && serial != 0:
			return true, nil
		case err == nil:
			return true, failed("versions", "Next gives version %d, and nothing new is published", next.Version())
		case !errors.Is(err, context.DeadlineExceeded):
			return true, err
		}
		return serial != 0 && showsNow(before, next), nil // the view is of the newest version
	}
	return l
}

func nextWithin[T any](ctx context.Context, isNews bool, next func(context.Context) (T, error)) (T, error) {
	bound := noNews
	if isNews {
		bound = newsBound
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	v, err := next(ctx)
	if isNews && errors.Is(err, context.DeadlineExceeded) {
		err = failed("versions", "no version comes: %v", err)
	}
	return v, err
}

// groupLooker looks at all names at once, by Group.Refresh, or by Group.Next.
type groupLooker struct {
	session   *hostplugin.Session
	next      bool
	published serials
	groups    map[string]*group
}

type group struct {
	*hostplugin.Group

	names   []string
	serials []uint64 // of what was published, as of the last look
	how     asking
}

func (*groupLooker) gives() bool { return false }

func (l *groupLooker) name() string {
	if l.next {
		return "Group.Next"
	}
	return "Group.Refresh"
}

func (l *groupLooker) reset() {
	for _, g := range l.groups {
		g.Close()
	}
	clear(l.groups)
}

func (l *groupLooker) look(ctx context.Context, names []string, how asking, use use) {
	all := distinct(names)
	g := l.groups[key(how, all...)]
	if g == nil {
		made, err := l.session.Group(all...)
		if err != nil {
			use(0, nil, err)
			return
		}
		g = &group{made, all, make([]uint64, len(all)), how}
		if l.groups == nil {
			l.groups = map[string]*group{}
		}
		l.groups[key(how, all...)] = g
	}
	before := g.all()
	tell, err := l.follow(ctx, g, before)
	if err != nil {
		use(concerned(names, err), nil, err)
		return
	}
	for i, name := range names {
		if v := g.View(name); tell && v == nil {
			use(i, nil, fmt.Errorf("the group has no view of %s", name))
		} else if tell && (!l.next || showsNow(before[slices.Index(all, name)], v)) {
			use(i, v, nil)
		}
	}
}

// concerned is the number of the name that an error is about.
func concerned(names []string, err error) int {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return max(0, slices.Index(names, e.Object))
	}
	return 0
}

// all gives the views.
func (g *group) all() (views []*core.View) {
	for _, name := range g.names {
		views = append(views, g.View(name))
	}
	return views
}

// follow looks at all names again, and reports whether the views show what is.
func (l *groupLooker) follow(ctx context.Context, g *group, before []*core.View) (tell bool, err error) {
	if !l.next {
		changed, err := g.Refresh(ctx, g.how.options()...)
		if err != nil {
			return false, err
		}
		return true, g.changed(changed, before)
	}
	isNews, complete, sure := l.isNews(g, before)
	_, err = nextWithin(ctx, isNews, func(ctx context.Context) (struct{}, error) { return struct{}{}, g.Next(ctx, g.how.options()...) })
	switch {
	case isNews && err == nil:
		for i, name := range g.names {
			if l.published != nil {
				g.serials[i], _ = l.published(name)
			}
		}
		return true, g.changed(true, before)
	case isNews || err != nil && !errors.Is(err, context.DeadlineExceeded):
		return false, err
	case err == nil && !sure && complete:
		return true, nil
	case err == nil:
		return false, failed("versions", "Group.Next returns, and nothing new is published")
	}
	return complete, nil
}

// isNews reports whether Group.Next must return, whether all names are published, and whether no look can have made
// newer versions.
func (l *groupLooker) isNews(g *group, before []*core.View) (isNews, complete, sure bool) {
	complete, sure = true, true
	for i, name := range g.names {
		if l.published == nil {
			return true, true, true
		}
		serial, certain := l.published(name)
		complete, sure = complete && serial != 0, sure && certain
		isNews = isNews || serial != g.serials[i] || before[i] == nil
	}
	return isNews && complete, complete, sure
}

// changed holds that views are others if, and only if, that was said.
func (g *group) changed(said bool, before []*core.View) error {
	changed := false
	for i, name := range g.names {
		changed = changed || g.View(name) != before[i]
	}
	if changed != said {
		return failed("follow", "changed is %v, and views of the group are others: %v", said, changed)
	}
	return nil
}
