// Package process finds what a program is made of, starts it, and ends it: its files and interpreter, environment, pipes,
// process group, descriptors, and the news of its end. A [Process] is what go-plugin attaches to.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
)

const (
	// drainTime is how long the end of a program waits for a slow logger to take its last output.
	drainTime = 50 * time.Millisecond
	// flushTime is how long CloseLog waits.
	flushTime = time.Second
	// killInterval is how often a process that is just being forked is looked for, to be killed.
	killInterval = 10 * time.Millisecond
)

// Spec says what to run.
type Spec struct {
	Path string   // what is executed
	Args []string // with argv[0]
	Dir  string   // the working directory; "" is this process's
	Env  []string

	// OutputFD passes a pipe for the program's standard output as descriptor 4, because descriptor 1
	// is for the handshake alone.
	OutputFD bool
	// Preload, if it is not "", is a file that is passed open, as descriptor 5. Only with OutputFD.
	Preload string
}

// Options say where a program's output goes.
type Options struct {
	Log            *slog.Logger
	Stdout, Stderr io.Writer // instead of the log; may be nil
}

// Process is a program, from before its start until after its end. It reads all of the program's output
// itself, so that nothing that the program prints, or that a descendant keeps open, can block anybody. All
// methods are safe for concurrent use.
type Process struct {
	spec *Spec
	opts Options
	side *os.File // the program's end of the side socket; closed once it has its own

	pipes   []*logs.Pipe
	reading sync.WaitGroup
	log     *logs.Writer // nil if nothing is logged
	stderr  *logs.Tail

	greeted chan struct{}
	exited  chan struct{}
	forker  atomic.Int32 // the thread that forks

	mu       sync.Mutex
	begun    bool   // started or discarded
	pid      int    // 0 before the start
	reaped   bool   // the pid may be someone else's by now
	killed   bool   // by Kill, while it ran
	greeting string // what came as the handshake
	state    *os.ProcessState
}

// New makes a process that is not started. It takes over side, which the program gets as descriptor
// 3. In the end Discard must be called, and then CloseLog.
func New(spec *Spec, side *os.File, opts Options) *Process {
	p := &Process{
		spec: spec, opts: opts, side: side,
		stderr:  new(logs.Tail),
		greeted: make(chan struct{}),
		exited:  make(chan struct{}),
	}
	if opts.Stdout == nil || opts.Stderr == nil {
		p.log = logs.NewWriter(opts.Log)
	}
	return p
}

// Discard closes what Start would have used, and Exited, if Start was never called.
func (p *Process) Discard() {
	if p.begin() {
		_ = p.side.Close() // never used
		close(p.exited)
	}
}

// begin reports whether neither Start nor Discard was called before.
func (p *Process) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.begun
	p.begun = true
	return first
}

// Start starts the program, in a process group of its own. It dies with this process. If ctx ends during
// the start, the program is killed.
func (p *Process) Start(ctx context.Context) error {
	if !p.begin() {
		return errors.New("the process was started or discarded before")
	}
	started := make(chan error)
	go p.run(started)
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		_ = p.Kill(ctx) // never fails
		return p.endStart(started)
	}
}

// endStart kills what a start has made so far, until the start returns. The program may have no pid here
// yet: the thread that forks waits until the new process has loaded its file, which takes long if the
// file lies on a slow network, or if somebody has stopped the process. That thread has no other child.
func (p *Process) endStart(started <-chan error) error {
	again := time.NewTicker(killInterval)
	defer again.Stop()
	for {
		select {
		case err := <-started:
			return err
		case <-again.C:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", p.forker.Load()))
		if err != nil {
			continue // of a thread that does not fork yet, or a kernel without that file
		}
		for field := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(field); err == nil {
				kill(pid) // if it has not gone
			}
		}
	}
}

// run starts the program, waits for its end, and reaps it, on one thread: PDEATHSIG strikes when the
// thread that forked ends, so that thread must live as long as the program.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	p.forker.Store(thread())
	cmd, inherited, err := p.command()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range inherited {
		_ = f.Close() // the program has its own by now
	}
	if err != nil {
		for _, pipe := range p.pipes {
			pipe.Close()
		}
		started <- err
		return
	}
	p.mu.Lock()
	p.pid = cmd.Process.Pid
	if p.killed {
		p.killGroup()
	}
	p.mu.Unlock()
	for _, pipe := range p.pipes {
		p.reading.Go(pipe.Read)
	}
	started <- nil
	awaitExit(cmd.Process.Pid)
	p.end(cmd)
}

// command makes the pipes and the command. The files are those that the program inherits.
func (p *Process) command() (cmd *exec.Cmd, inherited []*os.File, err error) {
	inherited = []*os.File{p.side}
	pipe := func(stream string, first func(string)) *os.File {
		if err != nil {
			return nil
		}
		var r *logs.Pipe
		var w *os.File
		if r, w, err = logs.NewPipe(logs.NewOutput(p.sink(stream), first)); err == nil {
			p.pipes = append(p.pipes, r)
			inherited = append(inherited, w)
		}
		return w
	}
	cmd = &exec.Cmd{
		Path: p.spec.Path, Args: p.spec.Args, Dir: p.spec.Dir, Env: p.spec.Env,
		Stdout:      pipe("stdout", p.greet),
		Stderr:      pipe("stderr", nil),
		ExtraFiles:  []*os.File{p.side},
		SysProcAttr: attributes(),
	}
	if p.spec.OutputFD {
		cmd.ExtraFiles = append(cmd.ExtraFiles, pipe("stdout", nil))
	}
	if err == nil && p.spec.Preload != "" {
		var f *os.File
		if f, err = os.Open(p.spec.Preload); err == nil {
			inherited = append(inherited, f)
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	return cmd, inherited, err
}

// sink says where a stream of the program goes.
func (p *Process) sink(stream string) logs.Sink {
	s := logs.Sink{Stream: stream, Raw: p.opts.Stdout, Log: p.log}
	if stream == "stderr" {
		s.Raw, s.Tail = p.opts.Stderr, p.stderr
	}
	if s.Raw != nil {
		s.Log = nil
	}
	return s
}

// end ends what the program left behind in its process group, reaps the program, and takes its last
// output.
func (p *Process) end(cmd *exec.Cmd) {
	p.mu.Lock()
	p.killGroup()
	p.reaped = true
	p.mu.Unlock()
	_ = cmd.Wait() // what it says is in the state
	for _, pipe := range p.pipes {
		pipe.Stop()
	}
	p.takeOutput()
	p.mu.Lock()
	p.state = cmd.ProcessState
	p.mu.Unlock()
}

// takeOutput returns when what lay in the pipes has been read. A reader that a slow logger, or a writer of
// the user's own, holds up is not waited for, and keeps its goroutine; one that has no processor is.
func (p *Process) takeOutput() {
	read := make(chan struct{})
	go func() {
		p.reading.Wait()
		close(read)
	}()
	look := time.NewTicker(drainTime / 2)
	defer look.Stop()
	for heldUp := 0; heldUp < 3; {
		select {
		case <-read:
			return
		case <-look.C:
		}
		if !slices.ContainsFunc(p.pipes, (*logs.Pipe).HeldUp) {
			continue
		}
		if heldUp++; heldUp == 2 && p.log != nil {
			p.log.Hurry()
		}
	}
}

// Dying reports whether the program is on its way out: it will run no instruction any more.
func (p *Process) Dying() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dying()
}

// dying is Dying. The caller holds the lock.
func (p *Process) dying() bool {
	if p.pid == 0 || p.reaped {
		return p.reaped
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return false
	}
	return exiting(string(stat))
}

// exiting reads the task's flags, of which PF_EXITING is set before the kernel closes the task's
// descriptors. The program's name comes before them, in parentheses, and may contain anything.
func exiting(stat string) bool {
	const pfExiting, flagsField = 0x4, 6
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= flagsField {
		return false
	}
	flags, err := strconv.ParseUint(fields[flagsField], 10, 64)
	return err == nil && flags&pfExiting != 0
}

// Exited is closed when the program is gone, its process group has been killed, and its output has
// been taken; also when Start has failed.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit tells, once Exited is closed, how the program ended: "exited with status 1", "was killed by
// signal 9 (SIGKILL)". It reports false
// if Kill ended it, so that its end says nothing about it, or if it was never started.
func (p *Process) Exit() (how string, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return "was not started", false
	}
	if signal := p.signal(); signal != 0 {
		how := fmt.Sprintf("was killed by signal %d", signal)
		if name := signalName(signal); name != "" { // real-time signals have none
			how += " (" + name + ")"
		}
		return how, !p.killed
	}
	return fmt.Sprintf("exited with status %d", p.state.ExitCode()), !p.killed
}

// Signal gives, once Exited is closed, the signal that the program died of, or 0.
func (p *Process) Signal() syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal()
}

// signal is Signal. The caller holds the lock.
func (p *Process) signal() syscall.Signal {
	if p.state != nil {
		if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

// LastErrors gives the last lines that the program has written to its standard error.
func (p *Process) LastErrors() string { return p.stderr.Text() }

// CloseLog ends the log of the program's output, after Exited or Discard.
func (p *Process) CloseLog() {
	if p.log != nil {
		p.log.Close(flushTime)
	}
}
