package hostplugin

import (
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
)

// ViewOption changes one request for a view. Only this package implements it.
type ViewOption interface {
	applyView(r contract.Request) contract.Request
}

// HCLogHandler makes a [Config.Logger] for hosts that log with hclog: slog.New(HCLogHandler(l)).
func HCLogHandler(l hclog.Logger) slog.Handler { return logs.HCLogHandler(l) }

// viewOption changes a copy, so that no request escapes to the heap.
type viewOption func(contract.Request) contract.Request

func (f viewOption) applyView(r contract.Request) contract.Request { return f(r) }

// Writable asks for memory that both sides can write. It fails with [core.ErrReadOnly] if the array
// may not be written, and with [core.ErrNotShared] if only a copy could cross.
func Writable() ViewOption {
	return viewOption(func(r contract.Request) contract.Request { r.Writable = true; return r })
}

// NoCopy refuses a copy: an array that cannot be shared is [core.ErrNotShared], with its reason.
func NoCopy() ViewOption {
	return viewOption(func(r contract.Request) contract.Request { r.Copy = contract.CopyNever; return r })
}

// AllowCopy allows a copy even if the configuration says copy = "never". The view says whether it
// is one, and why.
func AllowCopy() ViewOption {
	return viewOption(func(r contract.Request) contract.Request { r.Copy = contract.CopyIfNeeded; return r })
}

// NoWait makes a name that does not exist yet [core.ErrNotFound] at once, even if the program may
// still make it.
func NoWait() ViewOption {
	return viewOption(func(r contract.Request) contract.Request { r.NoWait = true; return r })
}
