package model

import (
	"context"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// looker is one route of the API by which a host sees arrays. It is used by one goroutine at a time.
type looker interface {
	// name is what a report calls the route.
	name() string
	// look takes a view of each name while the program stands still, and gives it, or the error, to use. The
	// view is closed after that unless use keeps it. A route that does not know such names, or such options,
	// does nothing.
	look(ctx context.Context, names []string, opts []hostplugin.ViewOption, use use)
}

// use is told what came of names[i]; it reports whether it keeps the view.
type use func(i int, v *core.View, err error) (keep bool)

// lookers gives every route that a session has.
func lookers(s *hostplugin.Session) []looker {
	return []looker{
		&sessionLooker{s},
		&sourceLooker{s, map[string]*hostplugin.Source{}},
		&freshLooker{s},
	}
}

// sessionLooker asks by Session.View.
type sessionLooker struct{ session *hostplugin.Session }

func (*sessionLooker) name() string { return "Session.View" }

func (l *sessionLooker) look(ctx context.Context, names []string, opts []hostplugin.ViewOption, use use) {
	for i, name := range names {
		v, err := l.session.View(ctx, name, opts...)
		closeUnless(use(i, v, err), v)
	}
}

// sourceLooker asks by Source.View of a source for each name.
type sourceLooker struct {
	session *hostplugin.Session
	sources map[string]*hostplugin.Source
}

func (*sourceLooker) name() string { return "Source.View" }

func (l *sourceLooker) look(ctx context.Context, names []string, opts []hostplugin.ViewOption, use use) {
	for i, name := range names {
		source, err := l.source(name)
		var v *core.View
		if err == nil {
			v, err = source.View(ctx, opts...)
		}
		closeUnless(use(i, v, err), v)
	}
}

func (l *sourceLooker) source(name string) (*hostplugin.Source, error) {
	if s := l.sources[name]; s != nil {
		return s, nil
	}
	s, err := l.session.Source(name)
	if err == nil {
		l.sources[name] = s
	}
	return s, err
}

// freshLooker asks by a source that nobody has asked before.
type freshLooker struct{ session *hostplugin.Session }

func (*freshLooker) name() string { return "a new Source.View" }

func (l *freshLooker) look(ctx context.Context, names []string, opts []hostplugin.ViewOption, use use) {
	once := sourceLooker{l.session, map[string]*hostplugin.Source{}}
	once.look(ctx, names, opts, use)
}

func closeUnless(keep bool, v *core.View) {
	if v != nil && !keep {
		v.Close()
	}
}
