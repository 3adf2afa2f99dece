package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
	"github.com/ndbridge/ndbridge/hostplugin/internal/connection"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

const (
	// exitWait is how long a session whose side socket has ended waits for news of how the program did.
	exitWait = 50 * time.Millisecond
	// dyingWait is how long it waits for a program that is about to die, which takes the kernel some
	// time if there is much memory to free.
	dyingWait = time.Second
	// causeWait is how long a call that finds the program gone waits for the reason.
	causeWait = exitWait + dyingWait + 250*time.Millisecond
	// flushWait bounds the release of leases when a session is closed.
	flushWait = 250 * time.Millisecond
)

// Session is a running program and the arrays in it. All methods are safe for concurrent use.
type Session struct {
	host     *Host
	ownsHost bool // nobody else knows it
	launch   *launch
	conn     *connection.Connection

	segments  *leases.Segments
	gpu       *imports.Importer
	gpus      []contract.UUID // those that the program knows the host to have
	leases    *leases.Client
	calls     *calls.Client // nil: functions cannot be called
	space     *arrays.Space // numbers the host's memory that the program has; nil likewise
	callbacks callbacks
	noCalls   chan struct{} // closed when there are none any more
	stuck     chan error    // has room for one: why the host ends the program
	carriers  sync.Pool     // of *carrier, which nobody uses
	results   sync.Pool     // of *returned, likewise

	arrays owned // the host's own that were made for this session, and pools of them

	begun     chan struct{} // closed when leases can be had
	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	closeErr  error         // what Close returns, once closeOnce is done
	gone      chan struct{} // closed when err is set
	torn      chan struct{} // closed when the program has ended and the connection is gone
	tornErr   error         // what failed then; final when torn is closed
	script    scriptEnd

	mu    sync.Mutex
	cause error // why the program is gone, without the session's own words
	err   error
}

// scriptEnd is how the program's script ended.
type scriptEnd struct {
	known chan struct{} // closed when err is final
	well  chan struct{} // closed when it is final, and nil
	err   error
}

// failed reports whether the program itself has said by now that its script ended badly.
func (s *scriptEnd) failed() bool {
	select {
	case <-s.known:
	default:
		return false
	}
	e, ok := errors.AsType[*core.Error](s.err)
	return ok && e.Remote
}

func newSession(h *Host, l *launch) *Session {
	return &Session{
		host: h, launch: l,
		begun:   make(chan struct{}),
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
		torn:    make(chan struct{}),
		noCalls: make(chan struct{}),
		stuck:   make(chan error, 1),
		script:  scriptEnd{known: make(chan struct{}), well: make(chan struct{})},
	}
}

// begin makes it the session of an open connection.
func (s *Session) begin(c *connection.Connection) {
	s.conn = c
	s.segments = leases.NewSegments(c.Client, s.launch.program.CopyMappedFiles)
	s.gpu = imports.New(c.Client)
	s.arrays.program, s.arrays.gpu = s.launch.program.Name, s.gpu
	s.leases = leases.New(leases.Options{
		Program: c.Client, Handoff: c.Handoff, Segments: s.segments, GPU: s.gpu, GPUs: s.gpus,
		Spin: s.launch.program.handoff().Spin, Gone: c.Side.Done(),
		Ended: s.gone, Why: func() error { return s.alive("", "") }, Finished: s.script.well,
		Log: s.host.log.With(slog.String("program", s.launch.program.Name)), Stale: s.stale,
	})
	close(s.begun)
	go func() {
		defer close(s.script.known)
		if s.script.err = c.Client.Wait(context.Background()); s.script.err == nil { // ends with the client
			close(s.script.well)
		}
	}()
	go s.supervise()
}

// stray gives back a lease that nobody waited for any more.
func (s *Session) stray(id contract.LeaseID) {
	<-s.begun // at once: such leases come from calls, which begin later
	s.leases.Stray(id)
}

// forked is told that the program has forked.
func (s *Session) forked() {
	select {
	case <-s.begun:
		s.leases.Forked()
	default: // nothing is leased yet
	}
}

// stale says that a view is not live any more: as a warning, unless its holder does what the warning advises.
func (s *Session) stale(name string, followed bool, why leases.Staleness, err error) {
	cause, level := string(why), slog.LevelWarn
	if err != nil {
		cause += ": " + err.Error()
	}
	if followed {
		level = slog.LevelDebug
	}
	s.host.log.Log(context.Background(), level, "a view does not show any more what the program writes",
		slog.String("program", s.launch.program.Name), slog.String("array", name), slog.String("cause", cause),
		slog.String("remedy", "call Source.Refresh to see what is current"))
}

// supervise waits for the end of the program or of the session, and then takes down the connection.
func (s *Session) supervise() {
	defer close(s.torn)
	known := s.script.known
	for cause := error(nil); cause == nil; {
		select {
		case <-s.closing:
			s.tornErr = s.shut()
			return
		case cause := <-s.stuck:
			s.lose(cause)
			s.tornErr = s.conn.End()
			return
		case <-s.conn.Process.Exited():
			cause = s.diagnose()
		case <-s.conn.Side.Done():
			cause = s.diagnose()
		case <-s.conn.Lost():
			cause = s.conn.Why()
		case <-known:
			known = nil
			if s.script.failed() || errors.Is(s.script.err, core.ErrUnavailable) {
				cause = s.diagnose()
			}
		}
		if cause != nil {
			s.lose(cause)
		}
	}
	if !s.script.failed() { // or it would end by itself
		select { // a program that the host cannot reach any more goes on
		case <-s.closing:
		case <-s.conn.Process.Exited():
		}
	}
	s.tornErr = s.conn.End()
}

// shut is the orderly end, at Close.
func (s *Session) shut() error {
	s.finish(core.ErrClosed, nil)
	errs := []error{s.leases.CloseViews()}
	ctx, cancel := context.WithTimeout(context.Background(), flushWait)
	s.leases.Flush(ctx)
	cancel()
	_ = s.conn.Client.Close() // never fails; ends the calls that are under way
	errs = append(errs, s.conn.End())
	if s.conn.Process.Signal() == syscall.SIGKILL {
		const remedy = "end sooner after a KeyboardInterrupt, raise stop_timeout, or wait with Session.Wait before Close"
		s.host.log.Info("the program was killed, since it did not end when the session was closed",
			slog.String("program", s.launch.program.Name), slog.String("remedy", remedy))
		errs = append(errs, &core.Error{
			Op: "close", Program: s.launch.program.Name, Kind: core.ErrUnavailable,
			Err: errors.New("the program did not end in time and was killed"), Remedy: remedy,
		})
	}
	s.gpu.Lost(errors.New("the session was closed"))
	return errors.Join(errs...)
}

// pollerGone is what Go says last when the descriptors of its network poller are gone.
const pollerGone = "fatal error: runtime: netpoll"

// diagnose finds out why the program is gone, or of no use any more. It waits, not long, for what is
// about to be known.
func (s *Session) diagnose() error {
	timeout := time.NewTimer(exitWait)
	defer timeout.Stop()
	exited, known := s.conn.Process.Exited(), s.script.known
	hasExited, patient := false, false
	for exited != nil || known != nil {
		select {
		case <-exited:
			exited, hasExited = nil, true
			_ = s.conn.Side.Close() // whoever has inherited the other end: this ends all calls
		case <-known:
			known = nil
			if s.script.failed() {
				return s.scriptCause()
			}
		case <-s.conn.Lost():
			return s.conn.Why()
		case <-timeout.C:
			if patient || hasExited || !s.conn.Process.Dying() {
				exited, known = nil, nil
			}
			patient = true
			timeout.Reset(dyingWait)
		}
	}
	if !hasExited {
		return errors.New("the program goes on, but has closed the descriptors through which the host reaches it")
	}
	how, _ := s.conn.Process.Exit()
	if strings.Contains(s.conn.Process.LastErrors(), pollerGone) { // before the plugin could say Lost
		return fmt.Errorf("the program closed descriptors of the plugin, which it had not opened, and %s", how)
	}
	return fmt.Errorf("the program %s%s", how, s.conn.LastErrors())
}

// scriptCause is the cause that the program itself gave.
func (s *Session) scriptCause() error {
	if py, ok := errors.AsType[*core.PythonError](s.script.err); ok {
		return raised{py}
	}
	if e, ok := errors.AsType[*core.Error](s.script.err); ok && e.Err != nil {
		return e.Err
	}
	return s.script.err
}

// raised is the cause of a program's end if its script raised. Calls fail for that exception before the end
// and after it; afterwards the program is gone, too.
type raised struct{ *core.PythonError }

// Is is that of errors.Is.
func (r raised) Is(target error) bool { return target == core.ErrUnavailable }

// Unwrap gives the exception.
func (r raised) Unwrap() error { return r.PythonError }

// lose makes cause the reason of the session's end.
func (s *Session) lose(cause error) {
	s.finish(core.ErrUnavailable, cause)
	s.gpu.Lost(cause)
	s.host.log.Info("the program is gone", "program", s.launch.program.Name, "cause", cause)
}

func (s *Session) finish(kind, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = cause
	s.err = &core.Error{Op: "session", Program: s.launch.program.Name, Kind: kind, Err: cause}
	close(s.gone)
}

// unavailable tells the client why the program is gone.
func (s *Session) unavailable(ctx context.Context) error {
	if s.conn == nil {
		return nil // still starting, where the reason is found otherwise
	}
	timeout := time.NewTimer(causeWait)
	defer timeout.Stop()
	select {
	case <-s.gone:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.cause
	case <-timeout.C:
	case <-ctx.Done():
	}
	return nil
}

// Info describes the program, its interpreter and the frameworks in it, as of now. What the host has
// given back before is not counted in Info.Leases any more.
func (s *Session) Info(ctx context.Context) (contract.Info, error) {
	if err := s.ready(ctx, "info", ""); err != nil {
		return contract.Info{}, err
	}
	s.leases.Flush(ctx)
	info, err := s.conn.Client.Info(ctx)
	if err != nil {
		return contract.Info{}, err
	}
	if s.launch.heapOff != "" {
		info.SharedHeap = "off: " + s.launch.heapOff
	}
	return info, nil
}

// Arrays lists the arrays that the program has now, sorted by name. Those that cannot be leased have
// an error in Entry.Err. The listing ends after the first error that concerns the program as a whole.
func (s *Session) Arrays(ctx context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		if err := s.ready(ctx, "list", ""); err != nil {
			yield(contract.Entry{}, err)
			return
		}
		s.conn.Client.Arrays(ctx)(yield)
	}
}

// Producer is the program as a contract.Producer, for those who want leases instead of views. It is valid
// until Close; leases that stand then are ended.
func (s *Session) Producer() contract.Producer { return s.conn.Client }

// Done is closed when the program is gone, or the session is closed. A program whose script has ended
// well is still there.
func (s *Session) Done() <-chan struct{} { return s.gone }

// Err is nil until Done is closed, and then why: it wraps core.ErrUnavailable with how the program
// ended and its last words, or the *core.PythonError that its script raised. After Close it wraps
// core.ErrClosed, unless the program was gone before.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close closes all views of the session and ends the program. A script that still runs gets a KeyboardInterrupt; after
// [Program.StopTimeout] the host kills whatever is left of the program. Views that were derived from the session's (by Sub,
// Transpose and the like) keep their memory until they are closed themselves. Close returns when nothing is left running.
// It is idempotent: each call returns what the first returned.
//
// The error is nil after a clean end, and also if the program was gone before: [Session.Err] says why. Whatever the error
// says, the session is closed. It wraps core.ErrUnavailable if the host had to kill the program, whose last output and
// exit handlers may be lost, or if the GPU still uses memory of the program; otherwise it says which memory could not be
// unmapped.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.torn
		if s.calls != nil {
			<-s.noCalls
		}
		errs := []error{s.tornErr, s.leases.CloseViews(), s.arrays.close()}
		s.leases.Close()
		errs = append(errs, s.segments.Close())
		if err := s.gpu.Close(); err != nil {
			s.host.log.Warn("GPU memory of the program is still in use",
				slog.String("program", s.launch.program.Name), slog.Any("cause", err))
			errs = append(errs, err)
		}
		s.host.forget(s)
		if s.ownsHost {
			errs = append(errs, s.host.Close())
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
