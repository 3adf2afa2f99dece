package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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
	Looks   int64         `json:"looks"`
	Errors  int64         `json:"errors"`
	Wrong   int64         `json:"wrong"` // looks that showed other elements than those that the program wrote
	First   string        `json:"first_mistake,omitempty"`
	Host    holdings      `json:"host_growth"`
	Program holdings      `json:"program_growth"`
}

// hammer lets callers look at all frameworks' arrays as fast as they can, and at some that the program replaces all
// the time, one by one and in groups. They compare all elements.
func hammer(ctx context.Context, p *bench.Program, opts options) (*hammered, error) {
	info, err := p.Info(ctx)
	if err != nil {
		return nil, err
	}
	end, err := p.Busy("replace")
	if err != nil {
		return nil, err
	}
	first, err := p.View(ctx, bench.Replaced()[0]) // it waits for it, which Latest does not
	if err != nil {
		return nil, err
	}
	if err := first.Close(); err != nil {
		return nil, err
	}
	run := &hammering{}
	begin := time.Now()
	var callers sync.WaitGroup
	for i := range hammerCallers {
		targets, err := targets(p, opts.plan.Sizes[0], i%2 == 0)
		if err != nil {
			return nil, err
		}
		callers.Go(func() { run.call(ctx, targets) })
	}
	host, program, err := run.growth(ctx, info.PID, opts.hammer)
	run.stop.Store(true)
	callers.Wait()
	took := time.Since(begin)
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	h := &hammered{
		For: took, Callers: hammerCallers, Looks: run.looks.Load(), Errors: run.errors.Load(), Wrong: run.wrong.Load(),
		Host: host, Program: program,
	}
	if first := run.first.Load(); first != nil {
		h.First = *first
	}
	return h, nil
}

// target is what a caller looks at, and how it knows what is in it.
type target struct {
	name  string
	look  func(ctx context.Context) error
	check func() error
	close func() error
}

// targets are those of one caller, who waits for versions or never waits.
func targets(p *bench.Program, size int, waits bool) ([]target, error) {
	var all []target
	var errs []error
	checks := map[string]func([]byte) error{}
	for _, framework := range frameworks() {
		for _, name := range []string{bench.Name(framework, size), bench.PublishedName(framework, size)} {
			checks[name] = isPattern(size)
		}
	}
	for _, name := range bench.Replaced() {
		checks[name] = new(newer).check
	}
	names := slices.Sorted(maps.Keys(checks))
	for _, name := range names {
		source, err := p.Source(name)
		errs = append(errs, err)
		all = append(all, single(name, checks[name], func(ctx context.Context, v *core.View) (*core.View, error) {
			v, _, err := source.Refresh(ctx, v)
			return v, err
		}))
		if !strings.HasPrefix(name, bench.Replaced()[0]) {
			continue
		}
		all = append(all, single(name+", Latest", new(newer).check, func(ctx context.Context, v *core.View) (*core.View, error) {
			v, _, err := source.Latest(ctx, v)
			return v, err
		}))
		if waits {
			all = append(all, single(name+", Next", new(newer).check, func(ctx context.Context, v *core.View) (*core.View, error) {
				return source.Next(ctx, v)
			}))
		}
	}
	group, err := p.Group(names...)
	all = append(all, several("group", group, checks, func(ctx context.Context) error { _, err := group.Refresh(ctx); return err }))
	errs = append(errs, err)
	if waits {
		pair, err := p.Group(bench.Replaced()...)
		var both newer // one array after the other: they are alike only if no version comes between them
		checks := map[string]func([]byte) error{}
		for i, name := range bench.Replaced() {
			checks[name] = both.check
			if i > 0 {
				checks[name] = both.same
			}
		}
		all = append(all, several("group, Next", pair, checks, func(ctx context.Context) error { return pair.Next(ctx) }))
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// single looks at one name.
func single(name string, check func([]byte) error, look func(context.Context, *core.View) (*core.View, error)) target {
	var view *core.View
	return target{
		name:  name,
		look:  func(ctx context.Context) (err error) { view, err = look(ctx, view); return err },
		check: func() error { return wrong(view, check) },
		close: func() error {
			if view == nil {
				return nil
			}
			return view.Close()
		},
	}
}

// several looks at a group of names.
func several(name string, group *hostplugin.Group, checks map[string]func([]byte) error, look func(context.Context) error) target {
	return target{name: name, look: look, check: func() error {
		for name, view := range group.Views() {
			if err := wrong(view, checks[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}, close: func() error { return group.Close() }}
}

func wrong(v *core.View, check func([]byte) error) error {
	data, err := v.Bytes()
	if err != nil {
		return err
	}
	return check(data)
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

// newer knows the last of the numbers of which the program makes arrays that are all alike.
type newer struct{ last float32 }

// check holds that all elements are alike, and not less than those before.
func (n *newer) check(data []byte) error {
	last := n.last
	n.last = math.Float32frombits(binary.LittleEndian.Uint32(data))
	if n.last < last {
		return fmt.Errorf("array %v came after array %v", n.last, last)
	}
	return n.same(data)
}

// same holds that all elements are the last number.
func (n *newer) same(data []byte) error {
	want := math.Float32bits(n.last)
	for i := 0; i < len(data); i += 4 {
		if got := binary.LittleEndian.Uint32(data[i:]); got != want {
			return fmt.Errorf("the element at %d of %d is %v, expected %v", i/4, len(data)/4, math.Float32frombits(got), n.last)
		}
	}
	return nil
}

// hammering is what the callers share.
type hammering struct {
	stop                 atomic.Bool
	looks, errors, wrong atomic.Int64
	first                atomic.Pointer[string]
}

func (h *hammering) call(ctx context.Context, targets []target) {
	for i := 0; !h.stop.Load(); i++ {
		t := targets[i%len(targets)]
		if err := t.look(ctx); err != nil {
			h.mistake(&h.errors, t, err)
			continue
		}
		h.looks.Add(1)
		if err := t.check(); err != nil {
			h.mistake(&h.wrong, t, err)
		}
	}
	for _, t := range targets {
		if err := t.close(); err != nil {
			h.mistake(&h.errors, t, err)
		}
	}
}

func (h *hammering) mistake(count *atomic.Int64, t target, err error) {
	count.Add(1)
	text := fmt.Sprintf("%s: %v", t.name, err)
	h.first.CompareAndSwap(nil, &text)
}

// growth is what both sides hold more at the end than when all had settled.
func (h *hammering) growth(ctx context.Context, pid int, length time.Duration) (host, program holdings, err error) {
	settle := min(settleTime, length/4)
	if err := pause(ctx, settle); err != nil {
		return host, program, err
	}
	hostThen, programThen, err := bothHold(pid)
	if err != nil {
		return host, program, err
	}
	if err := pause(ctx, length-settle); err != nil {
		return host, program, err
	}
	host, program, err = bothHold(pid)
	return host.minus(hostThen), program.minus(programThen), err
}
