package leases

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
	"github.com/ndbridge/ndbridge/internal/shm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a program with variables, and a host's client of it. What the program does comes from the test.
type world struct {
	c        *Client
	t        *testing.T
	gone     chan struct{}
	finished chan struct{}
	stale    chan string
	server   *handoff.Server
	table    *shm.Mapping

	mu         sync.Mutex
	writer     *offers.Writer
	entries    map[string]int
	arrays     map[string]*array
	standing   map[contract.LeaseID]contract.Lease
	names      map[contract.LeaseID]string
	last       contract.LeaseID
	descr      uint64
	highest    uint64                              // version that a name which is unpublished had
	described  map[contract.LeaseID]contract.Lease // what stands in the table
	retired    []*array                            // whose memory is used again when the host holds it no more
	files      []*os.File
	views      []*core.View             // those that the garbage collector must leave alone
	asked      []string                 // by gRPC
	mailed     []string                 // by the mailbox
	able       bool                     // it looks at leases again
	renews     bool                     // it renews leases
	moved      map[contract.LeaseID]int // the files to which a fork has moved the memory of leases
	renewing   func([]contract.Renewal) // is called by each renewal, when the program has done it
	silent     bool                     // the mailbox has no answers
	granted    func(l *contract.Lease)
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
	ticket  contract.LeaseID
	descr   uint64 // 0: not described yet
	shape   []int
}

// newWorld makes a program that looks at its leases again, and has a table.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, gone: make(chan struct{}), finished: make(chan struct{}), stale: make(chan string, 100), entries: make(map[string]int), arrays: make(map[string]*array),
		standing: make(map[contract.LeaseID]contract.Lease), names: make(map[contract.LeaseID]string), able: true,
		described: make(map[contract.LeaseID]contract.Lease), renews: true, moved: make(map[contract.LeaseID]int),
	}
	var err error
	if w.server, err = handoff.NewServer(w, w.Release, codec{w}, handoff.Settings{Slots: 4, Spin: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	file, err := w.server.Open(handoff.Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if w.table, err = shm.Map(file, offers.Size, false); err != nil {
		t.Fatal(err)
	}
	mail, err := handoff.NewClient(file, w.server.Memory(), codec{w}, time.Millisecond, func(id contract.LeaseID) { w.c.Stray(id) })
	if err != nil {
		t.Fatal(err)
	}
	cache := NewSegments(w, false)
	w.c = New(Options{
		Program: w, Handoff: mail, Segments: cache, GPU: imports.New(w), Log: slog.New(slog.DiscardHandler),
		Gone: w.gone, Ended: w.gone, Finished: w.finished, Why: func() error {
			return &core.Error{Op: "session", Program: "p", Kind: core.ErrUnavailable, Err: errors.New("it exited with status 3")}
		},
		Stale: w.turnsStale,
	})
	t.Cleanup(func() {
		if err := w.c.CloseViews(); err != nil {
			t.Error(err)
		}
		w.stand(0)
		w.views = nil
		w.c.Close()
		err := errors.Join(mail.Close(), w.server.Close(), cache.Close(), w.c.GPU.Close(), w.table.Close())
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
func (w *world) set(name string, value float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.make(value)
	w.retire(w.arrays[name])
	w.arrays[name] = a
}

// setCopied gives a name to an array that the host gets copies of.
func (w *world) setCopied(name string, value float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.make(value)
	w.retire(w.arrays[name])
	w.arrays[name] = a
	w.arrays[name].copied = true
}

// make makes an array whose elements have a value. It may lie where one lay that the host holds no more.
func (w *world) make(value float64) *array {
	file := len(w.files)
	for i, a := range w.retired {
		if (a.ticket == 0 || !w.writer.Held(uint64(a.ticket))) && !w.leased(a.file) {
			file = a.file
			w.retired = slices.Delete(w.retired, i, i+1)
			break
		}
	}
	if file == len(w.files) {
		f, err := shm.Create("array", 4096)
		if err != nil {
			w.t.Error(err)
		}
		w.files = append(w.files, f)
	}
	b := make([]byte, 4096)
	for i := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(int64(value)))
	}
	if _, err := w.files[file].WriteAt(b, 0); err != nil {
		w.t.Error(err)
	}
	return &array{file: file, value: value, shape: []int{4}}
}

// leased reports whether a lease stands on memory.
func (w *world) leased(file int) bool {
	for _, l := range w.standing {
		if s, ok := l.Handle.(contract.Segment); ok && s.ID == contract.SegmentID(file+1) {
			return true
		}
	}
	return false
}

// publish makes new versions of names at once, which are offered.
func (w *world) publish(value float64, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	defer w.writer.End()
	for _, name := range names {
		a := w.make(value)
		if _, told := w.entries[name]; !told {
			a.version = w.highest
		}
		if before := w.arrays[name]; before != nil {
			a.version = max(a.version, before.version)
			if before.offered {
				a.descr = before.descr // they differ in nothing but where they lie
			}
			w.retire(before)
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
		if a.descr == 0 {
			w.descr++
			a.descr = w.descr
			w.described[described(a.descr)] = w.lease(a, false)
		}
		body = binary.LittleEndian.AppendUint64(nil, uint64(described(a.descr)))
		e.Ticket, e.Description, e.Segment, e.Size, e.Forks = uint64(a.ticket), a.descr, uint64(a.file+1), 4096, w.writer.Forked()
	}
	w.writer.Write(i, &e, body)
}

// described is the lease that a description is of, which nobody has.
func described(descr uint64) contract.LeaseID { return contract.LeaseID(1<<62 + descr) }

// retire gives up an array, if there is one.
func (w *world) retire(a *array) {
	if a != nil {
		w.retired = append(w.retired, a)
	}
}

// unpublish takes a name back, and its variable with it.
func (w *world) unpublish(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	w.writer.Remove(w.entries[name])
	w.writer.End()
	w.highest = max(w.highest, w.arrays[name].version)
	w.retire(w.arrays[name])
	delete(w.entries, name)
	delete(w.arrays, name)
}

// unset deletes a variable.
func (w *world) unset(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retire(w.arrays[name])
	delete(w.arrays, name)
}

// withdraw withdraws an offer: the host has to ask for the array.
func (w *world) withdraw(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := *w.arrays[name]
	a.offered = false
	w.arrays[name] = &a
	w.writer.Begin()
	defer w.writer.End()
	w.tell(name, &a)
}

// fork takes all memory away from the host: of what there is, it gets copies.
func (w *world) fork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Forks().Add(1)
	for name, a := range w.arrays {
		apart := *w.make(a.value)
		apart.copied, apart.version, apart.at = true, a.version, a.at
		w.retire(a)
		w.arrays[name] = &apart
	}
}

// forkMoved makes all memory private, and moves it to other files then, which hold a value.
func (w *world) forkMoved(value float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Forks().Add(1)
	for name, a := range w.arrays {
		apart := *w.make(value)
		apart.version, apart.at = a.version, a.at
		for id, lease := range w.standing {
			if lease.Handle == w.lease(a, false).Handle {
				w.moved[id] = apart.file
			}
		}
		w.arrays[name] = &apart
	}
}

// separate withdraws the offers that a fork has made void.
func (w *world) separate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writer.Begin()
	defer w.writer.End()
	for name := range w.entries {
		w.tell(name, w.arrays[name])
	}
}

// sleepers counts those who sleep until something is published.
func (w *world) sleepers() (n uint64) {
	const sequence, entries, size = 0x48, 0x1008, 0x400
	b := w.table.Bytes()
	n = binary.LittleEndian.Uint64(b[sequence:])
	for i := range 8 {
		n += binary.LittleEndian.Uint64(b[entries+i*size:])
	}
	return n
}

// leases counts what stands, but for the host's holds.
func (w *world) leases() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.standing)
}

// stand holds that there are as many leases and holds as there are views. An answer whose call was given up, on a
// busy machine, may come later.
func (w *world) stand(views int) {
	w.t.Helper()
	eventually(w.t, "leases and holds stand for the views", func() bool {
		w.c.Flush(context.Background())
		n := w.leases()
		w.mu.Lock()
		defer w.mu.Unlock()
		return n+w.writer.Holds() == views
	})
}

// took gives what was asked for since the last time, by gRPC and by the mailbox.
func (w *world) took() (asked, mailed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, mailed = w.asked, w.mailed
	w.asked, w.mailed = nil, nil
	return asked, mailed
}

// view takes a view, which must be possible.
func (w *world) view(s *Source) *core.View {
	w.t.Helper()
	v, err := w.c.View(w.t.Context(), s, contract.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.keep(v)
}

// keep keeps a view until the end of the test, which closes it: one that is forgotten is a leak.
func (w *world) keep(v *core.View) *core.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views = append(w.views, v)
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

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
