package hostplugin

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
)

// View gives a view of one array of the program: its own memory, or, if that cannot be shared and
// copying is allowed, a copy that says so (View.Copied, View.Reason). The name is a Python name with
// attributes and items behind it (`frame`, `model.weight`, `batch["x"]`, `frames[::2, 10:]`), such a local variable
// of a function that runs (`main().model.weight`), a name that the program published, or whatever names the plugin
// has.
//
// A name that does not exist yet is waited for, until ctx ends, as long as the script still runs. The log
// says so after two seconds, with the name that was probably meant; the error says it as well. If ctx has a deadline, the
// program gives up up to a tenth of a second before it, so that its answer still arrives: the error wraps
// context.DeadlineExceeded then, too.
// The memory is mapped for reading unless [Writable] asks for more.
//
// The caller closes the view. It stays readable, even after the end of the program, until it is
// closed, or the session is.
//
// The errors wrap core.ErrNotFound, core.ErrNotShared, core.ErrReadOnly, core.ErrDType,
// core.ErrLayout, core.ErrUnsupported or core.ErrPython (what the program's side says about the
// array), core.ErrUnavailable (the program is gone), core.ErrProtocol or core.ErrPointer (its plugin
// answered what cannot be), core.ErrClosed, or the error of ctx.
func (s *Session) View(ctx context.Context, name string, opts ...ViewOption) (*core.View, error) {
	source := Source{session: s, source: s.leases.Named(name)}
	return source.View(ctx, opts...)
}

// wrap makes err an error about one array, whatever step of the work it comes from.
func (s *Session) wrap(op, array string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		kind := core.ErrProtocol
		if errors.Is(err, context.Canceled) {
			kind = context.Canceled
		} else if errors.Is(err, context.DeadlineExceeded) {
			kind = context.DeadlineExceeded
		}
		return &core.Error{Op: op, Program: s.launch.program.Name, Object: array, Kind: kind, Err: err}
	}
	about := *e
	about.Op, about.Program, about.Object = op, s.launch.program.Name, array
	return &about
}
