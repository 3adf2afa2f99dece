package hostplugin

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
)

// Source is a name of a program's that is looked at again and again. All methods are safe for concurrent
// use, but one View is passed to one call at a time. It needs no Close.
//
// A view of shared memory is live: there is no need to take it again to see what the program writes. Refresh
// tells whether the name still leads to that memory. Next and Latest follow the versions that the program
// publishes.
type Source struct {
	session *Session
	source  *leases.Source
}

// Source prepares a name for many looks. The array need not exist yet. The error wraps core.ErrUnavailable or
// core.ErrClosed.
func (s *Session) Source(name string) (*Source, error) {
	if err := s.alive("source", name); err != nil {
		return nil, err
	}
	return &Source{session: s, source: &leases.Source{Name: name}}, nil
}

// Name is the name that the source was made of.
func (s *Source) Name() string { return s.source.Name }

// View takes a view of what the name means now, as [Session.View] does.
func (s *Source) View(ctx context.Context, opts ...ViewOption) (*core.View, error) {
	const op = "view"
	if err := s.session.ready(ctx, op, s.Name()); err != nil {
		return nil, err
	}
	v, err := s.session.leases.View(ctx, s.source, request(opts))
	return v, s.session.wrap(op, s.Name(), err)
}

// Refresh looks at the name again. If it still leads to the same memory, described in the same way, the result
// is v itself and changed is false. That costs one round trip through shared memory and makes no garbage. If v
// is a copy, the program copies the array again into the same memory; on a GPU, v gets a fence that comes after
// all work that was queued until now. Otherwise the result is a new view, changed is true, and v is closed. If
// v is nil, Refresh is View; so a loop needs one line:
//
//	var v *core.View
//	for range ticker.C {
//		if v, _, err = src.Refresh(ctx, v); err != nil {
//			return err
//		}
//		// look at v
//	}
//
// v is a view that this source, or another of the same name and session, has given, and no view derived from it;
// anything else is core.ErrConfig. The options count only if v is nil: a view is refreshed as it was asked for.
// What was published with ndbridge.publish is compared with the newest version.
//
// After an error the result is v, which stays as it is: what it shows is right, if no longer new. Only if ctx ended while the
// program was copying the array again, the copy is finished behind it: v then shows the newer values soon, and elements of
// both until then. The errors are those of [Session.View].
func (s *Source) Refresh(ctx context.Context, v *core.View, opts ...ViewOption) (next *core.View, changed bool, err error) {
	return s.follow(ctx, "refresh", v, func() (*core.View, bool, error) {
		return s.session.leases.Refresh(ctx, s.source, v, request(opts))
	})
}

// Look is one of the sources that [Session.Refresh] looks at together, and what has become of it.
type Look struct {
	Source  *Source
	View    *core.View // of the source, or nil; afterwards what [Source.Refresh] would give
	Changed bool       // the view is another one now
	Err     error
}

// Refresh looks at several names of the program, each as [Source.Refresh] does, but asks the program once for all of them, as
// [Group.Refresh] does. Unlike a group, the names may be others each time, and none depends on another: each look has its own
// result, which Refresh writes into looks. A source of another session is core.ErrConfig. No source and no view is there twice.
func (s *Session) Refresh(ctx context.Context, looks []Look, opts ...ViewOption) {
	const op = "refresh"
	group, of := s.leases.Group(nil), make([]int, 0, len(looks))
	for i := range looks {
		l := &looks[i]
		l.Changed, l.Err = false, s.ready(ctx, op, l.Source.Name())
		if l.Source.session != s {
			l.Err = s.wrap(op, l.Source.Name(), &core.Error{
				Kind: core.ErrConfig, Err: errors.New("the source is of another session"), Remedy: "refresh it by its own session",
			})
		}
		if l.Err == nil {
			of, group.Sources, group.Views = append(of, i), append(group.Sources, l.Source.source), append(group.Views, l.View)
		}
	}
	_, _, _ = group.Refresh(ctx, request(opts)) // each has its own error
	for n, i := range of {
		l, before := &looks[i], looks[i].View
		l.View, l.Changed = group.Views[n], group.Views[n] != before
		l.Err = s.wrap(op, l.Source.Name(), group.Errs[n])
	}
}

// Latest gives a view of the newest version that the program has published under the name. If that is v's
// version, the result is v, which costs no more than a look at a word of shared memory. Otherwise it is as with
// Refresh: a new view, and v is closed. If v is nil, Latest takes a view.
//
// The error wraps core.ErrNotFound if nothing is published under the name, and core.ErrUnsupported without
// shared memory for versions (handoff = false, or a program that is not Python); otherwise the errors are those
// of Refresh.
func (s *Source) Latest(ctx context.Context, v *core.View, opts ...ViewOption) (next *core.View, changed bool, err error) {
	return s.follow(ctx, "latest", v, func() (*core.View, bool, error) {
		return s.session.leases.Latest(ctx, s.source, v, request(opts))
	})
}

// Next waits until the program has published a version that is newer than v's, and for any version if v is
// nil. It gives a view of the newest one and closes v. It waits without polling: the program wakes it. Versions
// that come faster than Next is called are passed over: View.Version tells how many.
//
// A name under which nothing is published is waited for, as View waits for one that does not exist. The log says so
// after two seconds, and the error of ctx says it as well, with the name that was probably meant.
//
// After an error the result is v. The errors are those of Latest, the error of ctx, and, if the program ends while Next
// waits, those of [Session.Err] and core.ErrPython. core.ErrNotFound says that the script has ended well, and that all
// that it has published was given before: a script has not ended while it has threads, but for daemon threads,
// for which Next does not wait. What these publish later is given by Latest, and by Next if it is there.
func (s *Source) Next(ctx context.Context, v *core.View, opts ...ViewOption) (*core.View, error) {
	next, _, err := s.follow(ctx, "next", v, func() (*core.View, bool, error) {
		next, err := s.session.leases.Next(ctx, s.source, v, request(opts))
		return next, err == nil, err
	})
	return next, err
}

// follow calls f while the session is alive and ctx has not ended.
func (s *Source) follow(
	ctx context.Context, op string, v *core.View, f func() (*core.View, bool, error),
) (*core.View, bool, error) {
	if err := s.session.ready(ctx, op, s.Name()); err != nil {
		return v, false, err
	}
	next, changed, err := f()
	if err != nil {
		return next, changed, s.session.wrap(op, s.Name(), err)
	}
	return next, changed, nil
}

func request(opts []ViewOption) (req contract.Request) {
	for _, o := range opts {
		req = o.applyView(req)
	}
	return req
}
