package main

import (
	"context"
	_ "embed" // the Python program
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/shm"
)

//go:embed hammered.py
var hammeredScript string

const (
	callHammerers = 64

	// mortals are the programs that are killed and started again, beside one that lives to the end.
	mortals = 2

	// logged is how many calls pass until what the log says of a call is overwritten.
	logged = 1 << 20

	// hammeredElements are those of each argument: so many that what the function makes of them is shared.
	hammeredElements = 20000
)

// hammeredCalls is what became of many callers at full rate, of programs that are killed meanwhile.
type hammeredCalls struct {
	For     time.Duration `json:"for_ns"`
	Callers int           `json:"callers"`
	Calls   int64         `json:"calls"`
	Kills   int64         `json:"kills"`
	Lost    int64         `json:"lost"`   // calls of programs that were killed
	Errors  int64         `json:"errors"` // of all other calls
	Wrong   int64         `json:"wrong"`  // answers of other calls, or of none
	Twice   int64         `json:"twice"`  // calls that were made twice
	First   string        `json:"first_mistake,omitempty"`
	Host    holdings      `json:"host_growth"`
	Program holdings      `json:"program_growth"` // of the one that lives to the end
}

// callHammer is what the callers share.
type callHammer struct {
	host    *hostplugin.Host
	log     *shm.Mapping
	targets [1 + mortals]atomic.Pointer[hammeredProgram] // nil: it is being started

	stop               atomic.Bool
	work               sync.RWMutex // writing: all rest
	number             atomic.Uint64
	calls, kills, lost atomic.Int64
	errors, wrong      atomic.Int64
	first              atomic.Pointer[string]
}

// hammeredProgram is one run of a program.
type hammeredProgram struct {
	*hostplugin.Session
	note   *hostplugin.Func
	pool   *hostplugin.Pool
	pid    int
	killed atomic.Bool
}

// hammerCalls lets callers call functions of several programs as fast as they can, while programs are killed.
func hammerCalls(ctx context.Context, opts options, dir string) (_ *hammeredCalls, err error) {
	h := &callHammer{}
	end, err := h.open(opts, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for i := range h.targets {
		if err := h.start(ctx, i); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	var callers, killers sync.WaitGroup
	for i := range callHammerers {
		callers.Go(func() { h.call(ctx, i) })
	}
	killing, endKilling := context.WithCancel(ctx)
	defer endKilling()
	for i := range mortals {
		killers.Go(func() { h.kill(killing, 1+i, opts.hammer) })
	}
	host, program, err := h.growth(ctx, opts.hammer)
	endKilling()
	killers.Wait()
	h.stop.Store(true)
	callers.Wait()
	words := h.log.Bytes()
	out := &hammeredCalls{
		For: time.Since(begin), Callers: callHammerers, Calls: h.calls.Load(), Kills: h.kills.Load(), Lost: h.lost.Load(),
		Errors: h.errors.Load(), Wrong: h.wrong.Load(), Twice: int64(binary.LittleEndian.Uint64(words[8*logged:])),
		Host: host, Program: program,
	}
	if first := h.first.Load(); first != nil {
		out.First = *first
	}
	return out, err
}

// open makes the log and the host.
func (h *callHammer) open(opts options, dir string) (end func() error, err error) {
	const size = 8 * (logged + 1)
	file, err := shm.Create("hammered", size)
	if err != nil {
		return nil, err
	}
	if h.log, err = shm.Map(file, size, true); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	clear(h.log.Bytes()) // all of it is there from now on, and does not look like growth
	closeLog := func() error { return errors.Join(h.log.Close(), file.Close()) }
	script := filepath.Join(dir, "hammered.py")
	if err := os.WriteFile(script, []byte(hammeredScript), 0o600); err != nil {
		return nil, errors.Join(err, closeLog())
	}
	var programs []hostplugin.Program
	for i := range h.targets {
		programs = append(programs, hostplugin.Program{
			Name: hammeredName(i), Script: script, Python: opts.python, Stdout: opts.program, Stderr: opts.program,
			Args: []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd())},
		})
	}
	h.host, err = hostplugin.New(hostplugin.Config{
		Programs: programs, LibDirs: []string{opts.lib}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, errors.Join(err, closeLog())
	}
	return func() error {
		err := h.host.Close()
		if errors.Is(err, core.ErrUnavailable) { // some were killed
			err = nil
		}
		return errors.Join(err, closeLog())
	}, nil
}

func hammeredName(i int) string { return fmt.Sprintf("hammered%d", i) }

// start starts a program, again if it has ended.
func (h *callHammer) start(ctx context.Context, i int) error {
	session, err := h.host.Start(ctx, hammeredName(i))
	if err != nil {
		return err
	}
	p := &hammeredProgram{Session: session}
	info, err := p.Info(ctx)
	if err != nil {
		return err
	}
	p.pid = info.PID
	if p.note, err = p.Func(ctx, "note"); err != nil {
		return err
	}
	if p.pool, err = p.Pool(core.Float32, hammeredElements); err != nil {
		return err
	}
	var all []*core.View // as many as there can be at once, so that the pool does not grow
	for range callHammerers {
		v, err := p.pool.Get()
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	for _, v := range all {
		if err := v.Close(); err != nil {
			return err
		}
	}
	h.targets[i].Store(p)
	return nil
}

// kill kills a program at random times and starts it again, until ctx ends. At the end it runs.
func (h *callHammer) kill(ctx context.Context, i int, length time.Duration) {
	longest := min(max(length/5, 1), 10*time.Second)
	for {
		if pause(ctx, time.Duration(rand.Int64N(int64(longest)))) != nil {
			return
		}
		if err := h.replace(context.WithoutCancel(ctx), i); err != nil {
			h.mistake(&h.errors, err)
			return
		}
	}
}

// replace kills a program, and starts it again.
func (h *callHammer) replace(ctx context.Context, i int) error {
	h.work.RLock()
	defer h.work.RUnlock()
	p := h.targets[i].Swap(nil)
	p.killed.Store(true)
	if err := unix.Kill(p.pid, unix.SIGKILL); err != nil {
		return err
	}
	h.kills.Add(1)
	<-p.Done()
	return errors.Join(p.Close(), h.start(ctx, i))
}

// call calls whichever program runs.
func (h *callHammer) call(ctx context.Context, first int) {
	for i := first; !h.stop.Load() && ctx.Err() == nil; i++ {
		p := h.targets[i%len(h.targets)].Load()
		if p == nil {
			p = h.targets[0].Load()
		}
		h.work.RLock()
		err := h.once(ctx, p)
		h.work.RUnlock()
		switch {
		case err == nil:
			h.calls.Add(1)
		case p.killed.Load() && (errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrClosed)):
			h.lost.Add(1)
		case ctx.Err() == nil:
			h.mistake(&h.errors, err)
		}
	}
}

// once calls a function with an array, and compares what comes back.
func (h *callHammer) once(ctx context.Context, p *hammeredProgram) (err error) {
	number := h.number.Add(1)
	v, err := p.pool.Get()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	data, err := core.Slice[float32](v)
	if err != nil {
		return err
	}
	mine := float32(number % 1000)
	data[0], data[hammeredElements-1] = mine, mine
	r, err := p.note.Call(ctx, number, v)
	if err != nil {
		return err
	}
	if err := h.check(r, number, mine+1); err != nil {
		h.mistake(&h.wrong, err)
	}
	return r.Close()
}

// check holds that a call gave what it was asked for, and that the log has it.
func (h *callHammer) check(r hostplugin.Result, number uint64, element float32) error {
	var got struct {
		Number uint64     `python:"number"`
		Sum    *core.View `python:"sum"`
	}
	if err := r.Decode(&got); err != nil {
		return err
	}
	sum, err := core.Slice[float32](got.Sum)
	if err != nil {
		return err
	}
	if got.Number != number || len(sum) != hammeredElements || sum[0] != element || sum[len(sum)-1] != element {
		return fmt.Errorf("call %d got %d elements of call %d, expected %d of %v", number, len(sum), got.Number, hammeredElements, element)
	}
	noted := binary.LittleEndian.Uint64(h.log.Bytes()[8*(number%logged):])
	if noted < number || noted%logged != number%logged {
		return fmt.Errorf("call %d got an answer, but the function has noted %d", number, noted)
	}
	return nil
}

func (h *callHammer) mistake(count *atomic.Int64, err error) {
	count.Add(1)
	text := err.Error()
	h.first.CompareAndSwap(nil, &text)
}

// growth is what both sides hold more at the end than when all had settled.
func (h *callHammer) growth(ctx context.Context, length time.Duration) (host, program holdings, err error) {
	settle := min(settleTime, length/4)
	if err := pause(ctx, settle); err != nil {
		return host, program, err
	}
	hostThen, programThen, err := h.held(ctx, settle)
	if err != nil {
		return host, program, err
	}
	if err := pause(ctx, length-settle); err != nil {
		return host, program, err
	}
	host, program, err = h.held(ctx, settle)
	return host.minus(hostThen), program.minus(programThen), err
}

// held looks while all programs run and nothing is called, after a while in which what was kept for the next call is
// given back.
func (h *callHammer) held(ctx context.Context, while time.Duration) (host, program holdings, err error) {
	h.work.Lock()
	defer h.work.Unlock()
	if err := pause(ctx, while); err != nil {
		return host, program, err
	}
	return bothHold(h.targets[0].Load().pid)
}

// hammerCalls holds the callers to no mistake and to no growth, as hammer does.
func (j *judge) hammerCalls(h *hammeredCalls) {
	if h == nil {
		return
	}
	figure := fmt.Sprintf("%d callers of functions at full rate for %v", h.Callers, h.For.Round(time.Second))
	j.add(figure, "no error but of killed programs, all answers right", fmt.Sprintf("%d errors, %d wrong of %d calls, %d lost in %d kills %s",
		h.Errors, h.Wrong, h.Calls, h.Lost, h.Kills, h.First), h.Errors+h.Wrong == 0 && h.Calls > 0 && h.Kills > 0)
	j.add(figure, "no call is made twice", fmt.Sprintf("%d of %d", h.Twice, h.Calls), h.Twice == 0 && h.Calls > 0)
	j.growth(figure, h.Host, h.Program)
}
