package hostplugin_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// fakeVariable makes the test binary a plugin: an ordinary executable that serves arrays.
const fakeVariable = "NDTEST_FAKE"

// fake describes a program that is this test binary.
func fake(mode string, args ...string) hostplugin.Program {
	return hostplugin.Program{
		Name: "fake", Plugin: exe(), Args: args, StopTimeout: time.Second,
		// The race detector would make each program stay for a second.
		Env: map[string]string{fakeVariable: mode, "GORACE": "atexit_sleep_ms=0"},
	}
}

func exe() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// fakeMain is the program. What it prints goes to the host's log.
func fakeMain(mode string) int {
	switch mode {
	case "serve":
	case "exit":
		fmt.Fprintln(os.Stderr, "no reason at all")
		return 7
	case "die":
		die()
	case "hang":
		select {}
	case "babble":
		say(1, "I am not a plugin.\n")
		select {}
	case "old":
		say(1, "1|99|unix|/tmp/nothing|grpc|\n")
		select {}
	case "elsewhere":
		say(1, "1|1|tcp|127.0.0.1:22|grpc|\n")
		select {}
	case "no-socket":
		say(1, "1|1|unix|/tmp/nothing|grpc|"+certificate()+"\n")
		select {}
	default:
		fmt.Fprintf(os.Stderr, "no mode %q\n", mode)
		return 2
	}
	p, err := newFakeProducer()
	if err == nil {
		err = kit.Serve(context.Background(), p, kit.ServeOptions{Name: "fake", Version: "1", Opened: p.opened})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if slices.Contains(os.Args, "linger") {
		select {}
	}
	return 0
}

// fakeProducer serves coretest's arrays from sealed memory, and does what else it is asked to by the
// names that it gets.
type fakeProducer struct {
	kit.Leases
	arrays map[string]fakeArray
	end    chan error // how the script ends

	mu       sync.Mutex
	settings contract.Settings
	opens    int // descriptors lent
}

type fakeArray struct {
	layout core.Layout
	file   *os.File
}

func newFakeProducer() (*fakeProducer, error) {
	p := &fakeProducer{arrays: make(map[string]fakeArray), end: make(chan error, 1)}
	for _, a := range coretest.Arrays() {
		layout, err := a.Layout()
		if err != nil {
			return nil, err
		}
		data, err := a.Stored()
		if err != nil {
			return nil, err
		}
		if err := p.add(a.Name, layout, data); err != nil {
			return nil, err
		}
	}
	big, err := core.NewLayout(core.LayoutSpec{DType: core.DTypeOf[uint8](), Shape: []int{64 << 20}})
	if err != nil {
		return nil, err
	}
	f, err := shm.Create("big", 64<<20) // all zero, so that it takes no memory
	p.arrays["big"] = fakeArray{layout: big, file: f}
	return p, err
}

func (p *fakeProducer) add(name string, layout core.Layout, data []byte) error {
	if len(data) == 0 {
		p.arrays[name] = fakeArray{layout: layout}
		return nil
	}
	f, err := shm.Create(name, int64(len(data)))
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	p.arrays[name] = fakeArray{layout: layout, file: f}
	return nil
}

// certificate gives one that a plugin could have: that of its host.
func certificate() string {
	block, _ := pem.Decode([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	return base64.RawStdEncoding.EncodeToString(block.Bytes)
}

// die is the end of a program that somebody kills.
func die() {
	say(2, "farewell\n")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// Configure implements contract.Configurer.
func (p *fakeProducer) Configure(s contract.Settings) error {
	if slices.Contains(os.Args, "die") {
		die()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
	for _, a := range s.Adapters {
		if slices.Contains(a.DisabledQuirks, "fortran.refuse-me") || a.QuirkEffects["fortran.refuse-me"] == "refuse" {
			return &core.Error{
				Op: "configure", Kind: core.ErrConfig, Err: errors.New("no such quirk"), Remedy: "leave it out",
			}
		}
	}
	return nil
}

// opened runs the "script".
func (p *fakeProducer) opened() {
	for _, arg := range os.Args[1:] {
		switch {
		case arg == "finish":
			p.end <- nil
		case arg == "raise":
			p.end <- &core.PythonError{Type: "ValueError", Message: "not today", Traceback: "Traceback..."}
		case arg == "detach": // a child in another process group, which keeps all pipes open
			sleep := exec.CommandContext(context.Background(), "sleep", "600")
			sleep.Stdout, sleep.Stderr = duplicate(1), duplicate(2)
			sleep.ExtraFiles = []*os.File{duplicate(3)}
			sleep.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := sleep.Start(); err != nil {
				panic(err)
			}
			say(2, fmt.Sprintf("detached %d\n", sleep.Process.Pid))
		case strings.HasPrefix(arg, "print="):
			n, err := strconv.Atoi(arg[len("print="):])
			if err != nil {
				panic(err)
			}
			for range n {
				say(2, strings.Repeat("x", 99)+"\n")
			}
		case arg == "hello":
			say(1, "hello by descriptor 1\n")
			say(2, "hello by descriptor 2\n")
		}
	}
}

// say writes to a descriptor that is not Go's to close.
func say(fd int, text string) {
	if _, err := syscall.Write(fd, []byte(text)); err != nil {
		panic(err)
	}
}

func duplicate(fd int) *os.File {
	n, err := syscall.Dup(fd)
	if err != nil {
		panic(err)
	}
	return os.NewFile(uintptr(n), "duplicate")
}

// Wait implements contract.Waiter.
func (p *fakeProducer) Wait(ctx context.Context) error {
	if slices.Contains(os.Args, "hello") {
		_, _ = fmt.Fprintln(os.Stdout, "hello by go-plugin") // which has put its pipe there before it serves calls
	}
	select {
	case err := <-p.end:
		p.end <- err
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Info implements contract.Producer. The interpreter's name tells what the host has configured.
func (p *fakeProducer) Info(context.Context) (contract.Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return contract.Info{
		Program: p.settings.Program, Plugin: "fake 1", PID: os.Getpid(), SharedHeap: "none", Leases: p.Len(),
		Interpreter: fmt.Sprintf("%d adapters, %d descriptors, %s", len(p.settings.Adapters), p.opens, os.Getenv("GREETING")),
	}, nil
}

// Arrays implements contract.Producer.
func (p *fakeProducer) Arrays(context.Context) iter.Seq2[contract.Entry, error] {
	return func(yield func(contract.Entry, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(p.arrays)) {
			if !yield(contract.Entry{Name: name, Framework: "fake", Layout: p.arrays[name].layout}, nil) {
				return
			}
		}
	}
}

// Lease implements contract.Producer.
func (p *fakeProducer) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	if l, ok, err := p.trick(ctx, name, req); ok {
		return l, err
	}
	a, ok := p.arrays[name]
	if !ok {
		if req.NoWait {
			return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: core.ErrNotFound, Remedy: "look again"}
		}
		<-ctx.Done()
		return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: ctx.Err()}
	}
	if req.Writable && a.layout.ReadOnly() {
		return contract.Lease{}, &core.Error{Op: "lease", Object: name, Kind: core.ErrReadOnly}
	}
	l := contract.Lease{
		Layout: a.layout, Fence: contract.Ready{}, Framework: "fake", Route: contract.RouteEmpty, Writable: req.Writable,
	}
	if a.file == nil {
		return p.Grant(l, kit.Memory{}, nil)
	}
	l.Route = contract.RouteSharedHeap
	b, err := kit.FileSegment(a.file)
	if err != nil {
		return contract.Lease{}, err
	}
	return p.Grant(l, kit.HostMemory(b), nil)
}
