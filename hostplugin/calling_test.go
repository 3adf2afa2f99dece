package hostplugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// TestRequestsEndAsTheSessionDid: a program that is ended answers until it is gone, and its last answers say that it ends. Who closed the
// session did that.
func TestRequestsEndAsTheSessionDid(t *testing.T) {
	t.Parallel()
	ending := &core.Error{Kind: core.ErrUnavailable, Err: errors.New("the interpreter is ending"), Remote: true}
	raised := &core.Error{Kind: core.ErrPython, Err: &core.PythonError{Type: "ValueError"}, Remote: true}
	gaveUp := &core.Error{Kind: context.Canceled, Err: core.ErrUnavailable}
	for end, all := range map[error]map[error]error{
		core.ErrClosed:      {ending: core.ErrClosed, calls.ErrClosed: core.ErrClosed, raised: core.ErrPython, gaveUp: context.Canceled, nil: nil},
		core.ErrUnavailable: {ending: core.ErrUnavailable, calls.ErrClosed: core.ErrUnavailable, raised: core.ErrPython, gaveUp: context.Canceled},
		nil:                 {ending: core.ErrUnavailable, calls.ErrClosed: core.ErrUnavailable, raised: core.ErrPython, gaveUp: context.Canceled},
	} {
		s := newSession(nil, &launch{program: Program{Name: "p"}})
		s.leases = new(leases.Client)
		if end != nil {
			s.finish(end, errors.New("it is over"))
		}
		for err, want := range all {
			got := s.failed(t.Context(), "call", "f", err)
			if !errors.Is(got, want) {
				t.Errorf("of a session that has ended as %v, %v became %v", end, err, got)
			}
			ours := want == core.ErrClosed || want == core.ErrUnavailable //nolint:errorlint // they stand in the table
			if got != nil && (!strings.HasPrefix(got.Error(), "call p/f: ") || strings.Contains(got.Error(), "it is over") != (ours && end != nil)) {
				t.Errorf("of a session that has ended as %v, %v became %v", end, err, got)
			}
		}
		if got := s.unsent("set", "f", "arguments", &core.Error{Kind: core.ErrReadOnly}); end != nil && !errors.Is(got, end) || end == nil && !errors.Is(got, core.ErrReadOnly) {
			t.Errorf("of a session that has ended as %v, what cannot be sent is %v", end, got)
		}
	}
}
