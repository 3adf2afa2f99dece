package leases

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin/internal/segments"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a program with variables, and a host's client of it. What the program does comes from the test.
type world struct {
	c      *Client
	t      *testing.T
	gone   chan struct{}
	stale  chan string
	server *handoff.Server

	mu         sync.Mutex
	writer     *offers.Writer
	entries    map[string]int
	arrays     map[string]*array
	standing   map[core.LeaseID]core.Lease
	names      map[core.LeaseID]string
	last       core.LeaseID
	descr      uint64
	described  map[core.LeaseID]core.Lease // what stands in the table
	files      []*os.File
	asked      []string // by gRPC
	mailed     []string // by the mailbox
	able       bool     // it looks at leases again
	silent     bool     // the mailbox has no answers
	granted    func(l *core.Lease)
	refused    error
	sameLeases bool // it answers that everything has changed with the lease that stands
}

// array is what a name means.
type array struct {
	file    int // its segment is this one's number plus 1
	value   float64
	copied  bool
	offered bool
	version uint64
	at      time.Time
	ticket  core.LeaseID
	shape   []int
}

// newWorld makes a program that looks at its leases again, and has a table.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, gone: make(chan struct{}), stale: make(chan string, 100), entries: make(map[string]int), arrays: make(map[string]*array),
		standing: make(map[core.LeaseID]core.Lease), names: make(map[core.LeaseID]string), able: true,
		described: make(map[core.LeaseID]core.Lease),
	}
	var err error
	if w.server, err = handoff.NewServer(w, codec{w}, handoff.Settings{Slots: 4, Spin: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	file, err := w.server.Open(handoff.Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mail, err := handoff.NewClient(file, w.server.Memory(), codec{w}, time.Millisecond, func(id core.LeaseID) { w.c.Stray(id) })
	if err != nil {
		t.Fatal(err)
	}
	cache := segments.New(w, false)
	w.c = New(Options{
		Program: w, Handoff: mail, Segments: cache, GPU: cuda.NewImporter(w), Gone: w.gone, Log: slog.New(slog.DiscardHandler),
		Stale: func(name string, why Staleness) { w.stale <- fmt.Sprintf("%s: %s", name, why) },
	})
	t.Cleanup(func() {
		w.c.CloseViews()
		w.c.Flush(context.Background()) //nolint:usetesting // at the end
		if n := w.leases(); n != 0 {
			t.Errorf("%d leases stand in the end", n)
		}
		w.mu.Lock()
		if n := w.writer.Holds(); n != 0 {
			t.Errorf("%d offers are held in the end", n)
		}
		w.mu.Unlock()
		w.c.Close()
		err := errors.Join(mail.Close(), w.server.Close(), cache.Close(), w.c.GPU.Close())
		for _, f := range w.files {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return w
}

// set gives a name to an array of four elements.
func (w *world) set(name string, value float64) *array {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.make(value)
	w.arrays[name] = a
	return a
}

func (w *world) make(value float64) *array {
	f, err := shm.Create("array", 4096)
	if err == nil {
		b := make([]byte, 4096)
		for i := range len(b) / 8 {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(int64(value)))
		}
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		w.t.Error(err)
	}
	w.files = append(w.files, f)
	return &array{file: len(w.files) - 1, value: value, shape: []int{4}}
}

// publish makes new versions of names at once, which are offered.
func (w *world) publish(value float64, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	defer w.writer.End()
	for _, name := range names {
		a := w.make(value)
		if before := w.arrays[name]; before != nil {
			a.version = before.version
		}
		a.version++
		a.at, a.offered = time.Now(), true
		w.last++
		a.ticket = w.last
		w.arrays[name] = a
		w.tell(name, a)
	}
}

// tell writes an array into the table.
func (w *world) tell(name string, a *array) {
	i, ok := w.entries[name]
	if !ok {
		if i, ok = w.writer.Add(name); !ok {
			w.t.Errorf("no entry for %s", name)
		}
		w.entries[name] = i
	}
	e := offers.Entry{Version: a.version, Published: a.at.UnixNano()}
	var body []byte
	if a.offered {
		w.descr++
		e.Ticket, e.Description = uint64(a.ticket), w.descr
		described := core.LeaseID(1<<62 + w.descr)
		w.described[described] = w.lease(a, false)
		body = binary.LittleEndian.AppendUint64(nil, uint64(described))
		e.Segment, e.Size, e.Forks = uint64(a.file+1), 4096, w.writer.Forked()
	}
	w.writer.Write(i, &e, body)
}

// unpublish takes a name back, and its variable with it.
func (w *world) unpublish(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	w.writer.Remove(w.entries[name])
	w.writer.End()
	delete(w.entries, name)
	delete(w.arrays, name)
}

// fork takes all memory away from the host.
func (w *world) fork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Forks().Add(1)
}

// separate is a fork, after which what was offered under names is to be asked for.
func (w *world) separate(names ...string) {
	w.fork()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	defer w.writer.End()
	for _, name := range names {
		w.arrays[name].offered = false
		w.tell(name, w.arrays[name])
	}
}

// leases counts what stands, but for the host's holds.
func (w *world) leases() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.standing)
}

// took gives what was asked for since the last time, by gRPC and by the mailbox.
func (w *world) took() (asked, mailed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, mailed = w.asked, w.mailed
	w.asked, w.mailed = nil, nil
	return asked, mailed
}

// lease describes an array.
func (w *world) lease(a *array, writable bool) core.Lease {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int64, Shape: a.shape})
	if err != nil {
		w.t.Error(err)
	}
	lease := core.Lease{
		Layout: l, Handle: core.Segment{ID: core.SegmentID(a.file + 1), Size: 4096, Sealed: true}, Fence: core.Ready{},
		Framework: "numpy", Route: core.RouteSharedHeap, Writable: writable,
	}
	if a.version > 0 {
		lease.Version, lease.Published = a.version, time.Unix(0, a.at.UnixNano())
	}
	if a.copied {
		lease.Route, lease.Reason = core.RouteStaged, core.ReasonHeapOff
	}
	return lease
}

// grant makes a lease. The caller holds the lock.
func (w *world) grant(name string, req core.Request) (core.Lease, error) {
	a := w.arrays[name]
	switch {
	case w.refused != nil:
		return core.Lease{}, w.refused
	case a == nil:
		return core.Lease{}, &core.Error{Op: "lease", Kind: core.ErrNotFound}
	case a.copied && (req.Writable || req.Copy == core.CopyNever):
		return core.Lease{}, &core.Error{Op: "lease", Kind: core.ErrNotShared, Reason: core.ReasonHeapOff}
	}
	lease := w.lease(a, req.Writable)
	w.last++
	lease.ID = w.last
	w.standing[lease.ID], w.names[lease.ID] = lease, name
	if w.granted != nil {
		f := w.granted
		w.mu.Unlock()
		f(&lease)
		w.mu.Lock()
	}
	return lease, nil
}

// again looks at a lease again. The caller holds the lock.
func (w *world) again(id core.LeaseID, only bool) (l core.Lease, changed bool, err error) {
	before, stands := w.standing[id]
	if !stands {
		return l, false, &core.Error{Op: "refresh", Kind: core.ErrUnsupported}
	}
	name := w.names[id]
	a := w.arrays[name]
	if w.sameLeases {
		return before, true, nil
	}
	if a != nil && w.refused == nil && before.Handle == (core.Segment{ID: core.SegmentID(a.file + 1), Size: 4096, Sealed: true}) &&
		before.Version == a.version {
		before.Fence = core.Ready{}
		return before, false, nil
	}
	if only && a != nil {
		return l, true, nil
	}
	l, err = w.grant(name, core.Request{Writable: before.Writable})
	return l, true, err
}

// Lease implements Program.
func (w *world) Lease(ctx context.Context, name string, req core.Request) (core.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "lease "+name)
	for !req.NoWait && w.arrays[name] == nil && w.refused == nil {
		w.mu.Unlock()
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		if ctx.Err() != nil {
			return core.Lease{}, &core.Error{Op: "lease", Kind: ctx.Err()}
		}
	}
	return w.grant(name, req)
}

// Refresh implements Program.
func (w *world) Refresh(_ context.Context, id core.LeaseID) (core.Lease, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, "refresh "+w.names[id])
	if !w.able {
		return core.Lease{}, false, &core.Error{Op: "refresh", Kind: core.ErrUnsupported}
	}
	return w.again(id, false)
}

// Release implements Program and handoff.Producer.
func (w *world) Release(_ context.Context, ids ...core.LeaseID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		delete(w.standing, id)
	}
	return nil
}

// Leases implements handoff.Producer.
func (w *world) Leases(_ context.Context, names []string, req core.Request, results []handoff.Look) []handoff.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.mailed = append(w.mailed, "lease "+name)
		l, err := core.Lease{}, errors.New("silent")
		if !w.silent {
			l, err = w.grant(name, req)
		}
		if err != nil {
			results = append(results, handoff.Look{})
			continue
		}
		results = append(results, handoff.Look{Status: handoff.Changed, Lease: l})
	}
	return results
}

// Refreshes implements handoff.Producer.
func (w *world) Refreshes(_ context.Context, ids []core.LeaseID, only bool, results []handoff.Look) []handoff.Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if len(w.mailed) < cap(w.mailed) {
			w.mailed = append(w.mailed, "refresh "+w.names[id])
		}
		look := handoff.Look{}
		if w.able && !w.silent {
			switch l, changed, err := w.again(id, only); {
			case err != nil:
			case changed:
				look = handoff.Look{Status: handoff.Changed, Lease: l}
			default:
				look.Status = handoff.Unchanged
			}
		}
		results = append(results, look)
	}
	return results
}

// Offers implements handoff.Offerer.
func (w *world) Offers(table *offers.Writer, _ handoff.Codec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if table != nil {
		w.writer = table
	}
}

// Descriptor implements segments.Describer.
func (w *world) Descriptor(_ context.Context, id core.SegmentID, writable bool) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id < 1 || int(id) > len(w.files) {
		return nil, &core.Error{Op: "descriptor", Kind: core.ErrNotFound}
	}
	if writable {
		return shm.ReadWrite(w.files[id-1])
	}
	return shm.ReadOnly(w.files[id-1])
}

// codec sends leases by their number: both sides are here.
type codec struct{ *world }

func (codec) Append(b []byte, l *core.Lease) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(b, uint64(l.ID)), nil
}

func (c codec) Lease(b []byte, req core.Request) (core.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.standing[c.ID(b)]
	if !ok {
		l, ok = c.described[c.ID(b)]
	}
	if !ok {
		return l, errors.New("no lease")
	}
	return l, l.Check(req)
}

func (codec) ID(b []byte) core.LeaseID { return core.LeaseID(binary.LittleEndian.Uint64(b)) }

// view takes a view, which must be possible.
func (w *world) view(s *Source, req core.Request) *core.View {
	w.t.Helper()
	v, err := w.c.View(w.t.Context(), s, req)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// valueOf reads a view.
func valueOf(t *testing.T, v *core.View) float64 {
	t.Helper()
	x, err := core.At[int64](v, slices.Repeat([]int{0}, v.Rank())...)
	if err != nil {
		t.Error(err)
	}
	return float64(x)
}

func closeView(t *testing.T, v *core.View) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
