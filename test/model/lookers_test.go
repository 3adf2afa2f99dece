package model

import (
	"context"
	"strings"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// looker is one route of the API by which a host sees arrays. It is used by one goroutine at a time.
type looker interface {
	// name is what a report calls the route.
	name() string
	// look takes a view of each name while the program stands still, and gives it, or the error, to use. A
	// route that does not know such names does nothing.
	look(ctx context.Context, names []string, how asking, use use)
	// gives reports whether the views become those of who keeps them.
	gives() bool
	// reset closes the views that the route holds for its next look.
	reset()
}

// use is told what came of names[i]; it reports whether it keeps the view.
type use func(i int, v *core.View, err error) (keep bool)

// asking is how a view is asked for: a word that events can have.
type asking string

func (a asking) options() []hostplugin.ViewOption {
	opts := []hostplugin.ViewOption{hostplugin.NoWait()}
	switch a {
	case "nocopy":
		opts = append(opts, hostplugin.NoCopy())
	case "writable":
		opts = append(opts, hostplugin.Writable())
	case "allow":
		opts = append(opts, hostplugin.AllowCopy())
	}
	return opts
}

// serials tells of a name how often the program had published anything when it last published the name; 0: it is
// not published. sure is false if a look may have made a newer version of it.
type serials func(name string) (serial uint64, sure bool)

// lookers gives every route that a session has: those for versions, too, if they are counted. published is nil if the
// program does not stand still while the host looks.
func lookers(s *hostplugin.Session, versions bool, published serials) []looker {
	all := []looker{
		&takeLooker{route: "Session.View", view: func(ctx context.Context, name string, how asking) (*core.View, error) {
			return s.View(ctx, name, how.options()...)
		}},
		newSourceLooker(s),
		&takeLooker{route: "a new Source.View", view: func(ctx context.Context, name string, how asking) (*core.View, error) {
			source, err := s.Source(name)
			if err != nil {
				return nil, err
			}
			return source.View(ctx, how.options()...)
		}},
		newRefreshLooker(s),
		newRefreshLooker(s), // twice, so that two views of a name are refreshed, each at times of its own
		&groupLooker{session: s},
	}
	if versions {
		all = append(all, newLatestLooker(s, published), newNextLooker(s, published), &groupLooker{session: s, next: true, published: published})
	}
	return all
}

// takeLooker takes a view each time.
type takeLooker struct {
	route string
	view  func(ctx context.Context, name string, how asking) (*core.View, error)
}

func (l *takeLooker) name() string { return l.route }
func (*takeLooker) gives() bool    { return true }
func (*takeLooker) reset()         {}

func (l *takeLooker) look(ctx context.Context, names []string, how asking, use use) {
	for i, name := range names {
		v, err := l.view(ctx, name, how)
		if !use(i, v, err) && v != nil {
			v.Close()
		}
	}
}

// sources are those of a session, made once for each name.
type sources struct {
	session *hostplugin.Session
	all     map[string]*hostplugin.Source
}

func (s *sources) of(name string) (*hostplugin.Source, error) {
	if source := s.all[name]; source != nil {
		return source, nil
	}
	source, err := s.session.Source(name)
	if err == nil {
		s.all[name] = source
	}
	return source, err
}

func newSources(s *hostplugin.Session) *sources {
	return &sources{s, map[string]*hostplugin.Source{}}
}

// newSourceLooker asks by Source.View of a source for each name.
func newSourceLooker(s *hostplugin.Session) looker {
	all := newSources(s)
	return &takeLooker{route: "Source.View", view: func(ctx context.Context, name string, how asking) (*core.View, error) {
		source, err := all.of(name)
		if err != nil {
			return nil, err
		}
		return source.View(ctx, how.options()...)
	}}
}

// distinct gives names without those that are there twice.
func distinct(names []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

// key stands for names that are asked for in one way.
func key(how asking, names ...string) string { return string(how) + " " + strings.Join(names, " ") }
