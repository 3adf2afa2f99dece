package hostplugin

import (
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
)

// HostOption changes how a [Host] works. Only this package implements it.
type HostOption interface{ applyHost(o *hostOptions) }

// ViewOption changes one request for a view. Only this package implements it.
type ViewOption interface {
	applyView(r contract.Request) contract.Request
}

type hostOptions struct {
	log            *slog.Logger
	stdout, stderr io.Writer
	libDirs        []string
}

type hostOption func(*hostOptions)

func (f hostOption) applyHost(o *hostOptions) { f(o) }

// WithLogger sends the host's log records to l: the lines that programs print (at info level, with
// the attributes "program" and "stream"), what their plugins log, and the host's own records. The
// default is [slog.Default].
//
// A handler that stands still for more than a second loses lines of output rather than stop the
// program that prints them; the log says how many.
func WithLogger(l *slog.Logger) HostOption {
	return hostOption(func(o *hostOptions) { o.log = l })
}

// WithHCLogger is [WithLogger] for hosts that log with hclog.
func WithHCLogger(l hclog.Logger) HostOption {
	return WithLogger(slog.New(logs.HCLogHandler(l)))
}

// WithOutput copies what programs print to stdout and stderr, byte by byte, instead of making log
// records of it; a nil writer keeps the log records of that stream. The writers are used from
// several goroutines if several programs run, and one that blocks in Write will in time block the
// programs, as a full pipe would.
func WithOutput(stdout, stderr io.Writer) HostOption {
	return hostOption(func(o *hostOptions) { o.stdout, o.stderr = stdout, stderr })
}

// WithLibDir makes the host look in dir for plugins given by name before it looks in
// $NDBRIDGE_LIB, in "lib" beside its own executable, and in "../lib/ndbridge" from there.
func WithLibDir(dir string) HostOption {
	return hostOption(func(o *hostOptions) { o.libDirs = append(o.libDirs, dir) })
}

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
