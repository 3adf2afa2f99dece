package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/internal/gpu/deferred"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// Streams records what the streams of this process wait for, on all GPUs: a call that frees host memory
// that GPUs reach may wait for any of them. A process has one driver.
var Streams deferred.Calls //nolint:gochecknoglobals // see above

// Primary keeps the primary context of a device alive: the context that the CUDA runtime, and with it
// nearly every library, works in. All methods are safe for concurrent use.
type Primary struct {
	Device  driver.Device
	Context driver.Context
	shared  *primary
	closed  atomic.Bool
}

// primary is the state that all users of a device in this process share.
type primary struct {
	mu      sync.Mutex
	users   int
	context driver.Context // kept while there are users, and until the calls that they deferred are made
	pinned  []uintptr      // lent to nobody: see Borrow
}

var primaries sync.Map //nolint:gochecknoglobals // of *primary, by driver.Device: a process has one driver

// Open retains the primary context of a device until Close. If no code uses the context yet, Open creates
// it, which takes several hundred milliseconds.
func Open(index int) (*Primary, error) {
	number := driver.Device(index) //nolint:gosec // the caller has it from the driver
	found, _ := primaries.LoadOrStore(number, new(primary))
	s := found.(*primary) //nolint:errcheck,forcetypeassert // nothing else is stored
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.context == 0 {
		ctx, err := driver.PrimaryCtxRetain(number)
		if err != nil {
			return nil, err
		}
		s.context = ctx
	}
	s.users++
	return &Primary{Device: number, Context: s.context, shared: s}, nil
}

// Do runs f on one thread on which the context is current.
func (p *Primary) Do(f func() error) error { return driver.With(p.Context, f) }

// End runs f, which makes driver calls that wait for all streams, as Do does. It defers f while a stream
// waits for another process: see [deferred.Calls.Make].
func (p *Primary) End(f func() error) error {
	return Streams.Make(func() error { return p.Do(f) })
}

// Close releases the context. The context ends, with everything in it, when its last user has closed it.
// Close is idempotent.
func (p *Primary) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	s := p.shared
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if !last {
		return nil
	}
	return Streams.Make(func() error { return s.end(p.Device) }) // after the calls that its users deferred
}

// end releases the context, unless it has a user again.
func (s *primary) end(number driver.Device) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 || s.context == 0 {
		return nil
	}
	_ = driver.With(s.context, func() error { // or it went with its context
		for _, addr := range s.pinned {
			_ = driver.FreeHost(addr)
		}
		return nil
	})
	s.context, s.pinned = 0, nil
	return driver.PrimaryCtxRelease(number)
}
