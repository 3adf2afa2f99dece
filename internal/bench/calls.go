package bench

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Caller does one thing again and again.
type Caller struct {
	Do    func(ctx context.Context) error // what is timed
	Tidy  func() error                    // what is not, after each; may be nil
	Batch int                             // so many calls are timed together, of what takes less than to read the clock; 0: 1
}

func (c Caller) once(ctx context.Context) (time.Duration, error) {
	batch := max(c.Batch, 1)
	start := time.Now()
	for range batch {
		if err := c.Do(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(start) / time.Duration(batch)
	if c.Tidy == nil {
		return took, nil
	}
	return took, c.Tidy()
}

// Calls makes a turn of so many calls of each caller, who all call at the same time. The first ones, warm,
// do not count: whoever sleeps between the turns wakes up.
func Calls(warm, count int, callers ...Caller) Turn {
	took := make([]time.Duration, count*len(callers))
	return func(ctx context.Context) ([]time.Duration, error) {
		if len(callers) == 1 {
			return took, callers[0].turn(ctx, warm, took)
		}
		errs := make([]error, len(callers))
		var all sync.WaitGroup
		for i, c := range callers {
			all.Go(func() { errs[i] = c.turn(ctx, warm, took[i*count:][:count]) })
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
		return took, nil
	}
}

func (c Caller) turn(ctx context.Context, warm int, took []time.Duration) (err error) {
	for range warm {
		if _, err := c.once(ctx); err != nil {
			return err
		}
	}
	for i := range took {
		if took[i], err = c.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// allocations counts what a call and its tidying cost the heap of this process, with all that other
// goroutines allocate meanwhile: the median of some counts, so that what happens now and then does not
// look like a part of each call.
func (c Caller) allocations(ctx context.Context) (float64, error) {
	const counts, calls = 9, 100
	took := make([]time.Duration, calls)
	each := make([]float64, 0, counts)
	for range counts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.turn(ctx, 0, took)
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		each = append(each, float64(after.Mallocs-before.Mallocs)/float64(calls*max(c.Batch, 1)))
	}
	slices.Sort(each)
	return each[counts/2], nil
}
