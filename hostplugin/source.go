package hostplugin

import (
	"context"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
)

// Source is an array of a program that is looked at again and again. All methods are safe for concurrent
// use. It needs no Close.
type Source struct {
	session *Session
	name    string
	source  *lessor.Source
}

// Source prepares a name for many views: it travels to the program once, and what the program says
// about the array is read anew only when it has changed. The array need not exist yet. The error wraps
// core.ErrUnavailable or core.ErrClosed.
func (s *Session) Source(name string) (*Source, error) {
	if err := s.alive("source", name); err != nil {
		return nil, err
	}
	return &Source{session: s, name: name, source: s.lessor.Source(name)}, nil
}

// Name is the name that the source was made of.
func (s *Source) Name() string { return s.name }

// View gives a view of what the name means now, as [Session.View] does.
func (s *Source) View(ctx context.Context, opts ...ViewOption) (*core.View, error) {
	return s.session.take(ctx, s.source, s.name, opts)
}
