package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/bench"
)

const (
	hammerCallers = 8

	// settleTime is how long the callers go before growth counts: pools and caches fill.
	settleTime = 5 * time.Second
)

// hammered is what became of many callers at full rate.
type hammered struct {
	For     time.Duration `json:"for_ns"`
	Callers int           `json:"callers"`
	Views   int64         `json:"views"`
	Errors  int64         `json:"errors"`
	Wrong   int64         `json:"wrong"` // views whose elements were not those that the program wrote
	First   string        `json:"first_mistake,omitempty"`
	Host    holdings      `json:"host_growth"`
	Program holdings      `json:"program_growth"`
}

// hammer lets callers take views of all frameworks' arrays as fast as they can, and of one that the program
// replaces all the time. They compare all elements.
func hammer(ctx context.Context, p *bench.Program, opts options) (*hammered, error) {
	info, err := p.Info(ctx)
	if err != nil {
		return nil, err
	}
	end, err := p.Busy("replace")
	if err != nil {
		return nil, err
	}
	run := &hammering{}
	begin := time.Now()
	var callers sync.WaitGroup
	for range hammerCallers {
		sources, err := targets(p, opts.plan.Sizes[0])
		if err != nil {
			return nil, err
		}
		callers.Go(func() { run.call(ctx, sources) })
	}
	host, program, err := run.growth(ctx, info.PID, opts.hammer)
	run.stop.Store(true)
	callers.Wait()
	took := time.Since(begin)
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	h := &hammered{
		For: took, Callers: hammerCallers, Views: run.views.Load(), Errors: run.errors.Load(), Wrong: run.wrong.Load(),
		Host: host, Program: program,
	}
	if first := run.first.Load(); first != nil {
		h.First = *first
	}
	return h, nil
}

// target is an array that a caller looks at, and how it knows what is in it.
type target struct {
	source *hostplugin.Source
	check  func(data []byte) error
}

func targets(p *bench.Program, size int) ([]target, error) {
	var all []target
	add := func(name string, check func([]byte) error) error {
		source, err := p.Source(name)
		all = append(all, target{source, check})
		return err
	}
	for _, framework := range frameworks() {
		for _, name := range []string{bench.Name(framework, size), bench.PublishedName(framework, size)} {
			if err := add(name, isPattern(size)); err != nil {
				return nil, err
			}
		}
	}
	return all, add(bench.Replaced, isNewer())
}

// isPattern holds what making.py has written.
func isPattern(size int) func([]byte) error {
	const period = 4093
	var want []byte
	for i := range size / 4 {
		want = binary.LittleEndian.AppendUint32(want, math.Float32bits(float32(i%period)))
	}
	return func(data []byte) error {
		if !bytes.Equal(data, want) {
			return errors.New("the elements are not those that were written")
		}
		return nil
	}
}

// isNewer holds that all elements are alike, and not less than in the view before.
func isNewer() func([]byte) error {
	var last float32
	return func(data []byte) error {
		first := binary.LittleEndian.Uint32(data)
		for i := 0; i < len(data); i += 4 {
			if got := binary.LittleEndian.Uint32(data[i:]); got != first {
				return fmt.Errorf("of %d elements the first is %#x, but the one at %d is %#x", len(data)/4, first, i/4, got)
			}
		}
		now := math.Float32frombits(first)
		if now < last {
			return fmt.Errorf("array %v came after array %v", now, last)
		}
		last = now
		return nil
	}
}

// hammering is what the callers share.
type hammering struct {
	stop                 atomic.Bool
	views, errors, wrong atomic.Int64
	first                atomic.Pointer[string]
}

func (h *hammering) call(ctx context.Context, targets []target) {
	views := make([]*core.View, len(targets))
	for i := 0; !h.stop.Load(); i++ {
		t, v := targets[i%len(targets)], &views[i%len(targets)]
		var err error
		if *v, _, err = t.source.Refresh(ctx, *v); err != nil {
			h.mistake(&h.errors, t, err)
			continue
		}
		h.views.Add(1)
		if err := wrong(*v, t.check); err != nil {
			h.mistake(&h.wrong, t, err)
		}
	}
	for i, v := range views {
		if v == nil {
			continue
		}
		if err := v.Close(); err != nil {
			h.mistake(&h.errors, targets[i], err)
		}
	}
}

func wrong(v *core.View, check func([]byte) error) error {
	data, err := v.Bytes()
	if err != nil {
		return err
	}
	return check(data)
}

func (h *hammering) mistake(count *atomic.Int64, t target, err error) {
	count.Add(1)
	text := fmt.Sprintf("%s: %v", t.source.Name(), err)
	h.first.CompareAndSwap(nil, &text)
}

// growth is what both sides hold more at the end than when all had settled.
func (h *hammering) growth(ctx context.Context, pid int, length time.Duration) (host, program holdings, err error) {
	settle := min(settleTime, length/4)
	if err := pause(ctx, settle); err != nil {
		return host, program, err
	}
	held := func() (host, program holdings, err error) {
		debug.FreeOSMemory() // what is garbage is not held
		if host, err = holdingsOf(os.Getpid()); err == nil {
			program, err = holdingsOf(pid)
		}
		return host, program, err
	}
	hostThen, programThen, err := held()
	if err != nil {
		return host, program, err
	}
	if err := pause(ctx, length-settle); err != nil {
		return host, program, err
	}
	host, program, err = held()
	return host.minus(hostThen), program.minus(programThen), err
}
