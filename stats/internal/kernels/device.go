//go:build cuda

package kernels

import (
	"context"
	_ "embed" // kernels.ptx
	"errors"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
	"github.com/ndbridge/ndbridge/internal/reuse"
)

//go:embed kernels.ptx
var ptx []byte

const (
	// idleTime is how long the kernels stay on a GPU that nothing has been summed up on.
	idleTime = 30 * time.Second
	threads  = 256
	// Each multiprocessor has a few blocks of threads: as many as it can work on at once, since the host has to merge their parts.
	// Patterns have none.
	blocksEach        = 3
	blocksForPatterns = 8
	maxParts          = 1 << 12
	// each is how many elements a thread reads at once.
	each = 8
	// scratchSize is what the largest job needs of the GPU's memory: it stays below that of borrowed pinned memory.
	scratchSize = 2 << 20
)

// Device has the kernels on one GPU. All methods are safe for concurrent use.
type Device struct {
	primary  *gpu.Primary
	stream   *cuda.Stream
	module   *cuda.Module
	sum      *cuda.Function
	bins     *cuda.Function
	patterns *cuda.Function
	scratch  uintptr       // memory of the GPU
	units    int           // multiprocessors
	turn     chan struct{} // of who gives it work
	entry    *reuse.Entry[int, *Device]

	mu    sync.Mutex
	asked []*asked
}

// devices are those that are in use, or were a short time ago.
var devices = reuse.New[int, *Device](reuse.Limits{Time: idleTime, Count: 64, Bytes: 64 * scratchSize}) //nolint:gochecknoglobals // a process has one driver

// refused are the GPUs that the kernels cannot run on: to ask again is of no use, at least for a while.
var refused sync.Map //nolint:gochecknoglobals // likewise

// refusal is why, and until when; zero: for ever.
type refusal struct {
	err   error
	until time.Time
}

// fullTime is how long a GPU is not asked again that had no room for the kernels: to find out takes a tenth of a second.
const fullTime = time.Second

// Open gives the device with this index in this process. The caller calls its Release once. The errors are those of [cuda.LoadModule]; they wrap
// core.ErrUnavailable if the GPU has no room.
func Open(ctx context.Context, index int) (*Device, error) {
	if r, ok := refused.Load(index); ok {
		if r := r.(refusal); r.until.IsZero() || time.Now().Before(r.until) { //nolint:errcheck,forcetypeassert // nothing else is stored
			return nil, r.err
		}
	}
	d, err := devices.Use(ctx, index, 0, func(e *reuse.Entry[int, *Device]) (*Device, error) {
		d := &Device{turn: make(chan struct{}, 1), entry: e}
		if err := d.start(ctx, index); err != nil {
			return nil, errors.Join(err, d.End()) //nolint:contextcheck // it does not wait
		}
		return d, nil
	})
	switch {
	case errors.Is(err, core.ErrUnsupported), errors.Is(err, core.ErrVersion), errors.Is(err, core.ErrConfig):
		refused.Store(index, refusal{err: err})
	case err != nil && ctx.Err() == nil:
		refused.Store(index, refusal{err, time.Now().Add(fullTime)})
	}
	return d, err
}

func (d *Device) start(ctx context.Context, index int) (err error) {
	if err := cuda.Available(); err != nil {
		return err
	}
	if d.stream, err = cuda.NewStream(index); err != nil {
		return err
	}
	if d.module, err = cuda.LoadModule(ctx, index, ptx); err != nil {
		return err
	}
	for name, f := range map[string]**cuda.Function{"sum": &d.sum, "bins": &d.bins, "patterns": &d.patterns} {
		if *f, err = d.module.Function(ctx, "ndbridge_stats_"+name); err != nil {
			return err
		}
	}
	if d.primary, err = gpu.Open(index); err != nil {
		return explain("", err)
	}
	if d.units, err = driver.DeviceGetAttribute(d.primary.Device, driver.AttrMultiprocessors); err != nil {
		return explain("", err)
	}
	return explain("", d.primary.Do(func() error { d.scratch, err = driver.MemAlloc(scratchSize); return err }))
}

// explain says of which array an error of the driver is; nil stays nil.
func explain(name string, err error) error {
	if err == nil {
		return nil
	}
	return driver.Explain("stats", name, err)
}

// Size implements reuse.Resource.
func (*Device) Size() int64 { return scratchSize }

// End implements reuse.Resource.
func (d *Device) End() error {
	var errs []error
	if d.scratch != 0 {
		errs = append(errs, d.primary.End(func() error { return driver.MemFree(d.scratch) }))
	}
	if d.module != nil {
		errs = append(errs, d.module.Close())
	}
	if d.stream != nil {
		errs = append(errs, d.stream.Close())
	}
	if d.primary != nil {
		errs = append(errs, d.primary.Close())
	}
	return errors.Join(errs...)
}

// Release ends the caller's use of the device.
func (d *Device) Release() { _ = d.entry.Release() } // what it ends, nobody uses any more

// Sum sums up what the job says, and counts it into bins if it says so; or it counts patterns. It waits for the work of the program that writes the arrays. The
// memory of all arrays is that of the device.
//
// The errors are those of [core.View.Wait], [cuda.Function.Launch] and [cuda.Stream.Synchronize].
func (d *Device) Sum(ctx context.Context, j *Job) ([]Part, *Counts, error) {
	// Not the stream: whoever sums up another array need not wait for the same program.
	if err := j.From.View.Wait(ctx); err != nil {
		return nil, nil, err
	}
	if j.Base != nil {
		if err := j.Base.View.Wait(ctx); err != nil {
			return nil, nil, err
		}
	}
	a := d.ask(j)
	for {
		select {
		case <-a.done:
			return a.parts, a.counts, a.err
		case <-ctx.Done():
			d.forget(a)
			return nil, nil, ended(ctx, j)
		case d.turn <- struct{}{}:
			d.work(ctx)
		}
	}
}
