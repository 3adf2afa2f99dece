package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// sideFD is the descriptor at which a host hands the side socket to what it starts.
const sideFD = 3

// ServeOptions are the options of [Serve].
type ServeOptions struct {
	// Name and Version name the plugin in messages to people who run it by hand.
	Name, Version string

	// Handshake is where the host reads the plugin's address. Nil is the standard output, which the
	// plugin must not use for anything else.
	Handshake *os.File

	// Side is the program's end of the side socket. Nil is descriptor 3. Serve takes it over, and
	// keeps its descriptor if the file is in non-blocking mode.
	Side *os.File

	// Opened, if it is not nil, is called once the host has the session open. A program starts its
	// script then, and not earlier: it may end the process, and the host would not know how far the
	// session got.
	Opened func()

	// ResetInterrupt gives SIGINT back, before Opened, to who handled it before: go-plugin
	// makes the process ignore it. It undoes all of the process's signal.Notify calls for SIGINT.
	// For plugins inside a program with handlers of its own.
	ResetInterrupt bool

	// OwnDescriptors opens the files of arrays in a table of descriptors of their own. For plugins inside a
	// program that counts on the lowest number that is free.
	OwnDescriptors bool

	// Logger gets go-plugin's own messages. Nil drops them.
	Logger hclog.Logger
}

// Serve serves p to the host that started this process, until the host ends the session, dies, or
// ctx ends: then it returns nil. It returns an error if it could not serve.
//
// If p is a contract.Waiter, the host can wait for it; if it is a contract.Configurer, it gets the host's
// settings. When Serve returns, no lease is needed any more, but calls of p's methods may still run,
// with contexts that have ended.
//
// Serve is called at most once in a process. While it runs, os.Stdout and os.Stderr of this process
// are pipes that the host drains.
func Serve(ctx context.Context, p contract.Producer, opts ServeOptions) error {
	if err := checkCookie(opts); err != nil {
		return err
	}
	side, err := sideConn(opts.Side)
	if err != nil {
		return serveError(core.ErrUnavailable, fmt.Errorf("side socket: %w", err))
	}
	defer func() { _ = side.Close() }() // the process is at its end, or said so already
	if opts.OwnDescriptors {
		_ = shm.Separate(side.Descriptor()) // else the files are opened beside the program's
	}
	if err := checkPipes(); err != nil {
		return serveError(core.ErrUnavailable, err)
	}
	server := wire.NewServer(p, side)
	return errors.Join(serve(ctx, side, server, opts), server.Close())
}

func serve(ctx context.Context, side *fdpass.Conn, server *wire.Server, opts ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	log := newErrorKeeper(opts.Logger)
	stopper := &stopper{}
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel() // the host is gone
		watchHost(side, server, sync.OnceFunc(func() {
			if opts.ResetInterrupt {
				// Here, because go-plugin takes the signal before it serves the first call.
				signal.Reset(os.Interrupt)
			}
			if opts.Opened != nil {
				opts.Opened()
			}
		}))
	})
	stop := context.AfterFunc(ctx, stopper.stop)
	defer func() {
		stop()
		cancel()
		_ = side.Close() // ends watchHost
		watching.Wait()
	}()

	defer redirect(opts.Handshake)()
	err := wire.Serve(side, &plugin.ServeConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         plugin.PluginSet{wire.PluginName: &wire.Plugin{Serve: server}},
		GRPCServer:      stopper.newServer,
		Logger:          log,
	})
	switch {
	case ctx.Err() != nil:
		return nil // ended as it should
	case err == nil:
		err = log.err()
	}
	if err == nil && !stopper.used() {
		err = errors.New("go-plugin did not start")
	}
	if err != nil {
		return serveError(core.ErrUnavailable, err)
	}
	return nil // the host shut the server down
}

// redirect makes go-plugin print the address on handshake. The result undoes what go-plugin does to
// the standard streams.
func redirect(handshake *os.File) (restore func()) {
	stdout, stderr := os.Stdout, os.Stderr
	if handshake != nil {
		os.Stdout = handshake
	}
	before := os.Stdout
	return func() {
		if os.Stdout != before { // go-plugin's pipes: closing them ends the goroutines that read them
			_, _ = os.Stdout.Close(), os.Stderr.Close()
		}
		os.Stdout, os.Stderr = stdout, stderr
	}
}

// checkCookie does what go-plugin does by ending the process.
func checkCookie(opts ServeOptions) error {
	h := wire.Handshake()
	if os.Getenv(h.MagicCookieKey) == h.MagicCookieValue {
		return nil
	}
	name := strings.TrimSpace(opts.Name + " " + opts.Version)
	if name == "" {
		name = "this file"
	}
	return &core.Error{
		Op: "serve", Kind: core.ErrConfig,
		Err:    fmt.Errorf("%s is an ndbridge plugin, which only a host can run", name),
		Remedy: `name it as the "plugin" of a program in the host's configuration, or try "ndbridge view --help"`,
	}
}

func sideConn(side *os.File) (*fdpass.Conn, error) {
	if side == nil {
		return fdpass.FromFD(sideFD)
	}
	return fdpass.FromFile(side)
}

// checkPipes makes and closes the pipes that go-plugin is about to make, because it ends the process
// if it cannot.
func checkPipes() error {
	var files []*os.File
	var err error
	for range 2 {
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			break
		}
		files = append(files, r, w)
	}
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// watchHost reads until the host has closed its end, hands descriptors to the server, and calls opened when the host says so. Other
// messages are of later versions.
func watchHost(side *fdpass.Conn, server *wire.Server, opened func()) {
	for {
		msg, files, err := side.Recv()
		if err == nil && server.Deliver(msg, files) {
			continue
		}
		for _, f := range files {
			_ = f.Close() // unwanted
		}
		if err != nil && !errors.Is(err, fdpass.ErrTruncated) {
			return
		}
		if wire.Opened(msg) {
			opened()
		}
	}
}

// stopper stops go-plugin's gRPC server, which is the way to make plugin.Serve return. It may be
// told to before there is a server.
type stopper struct {
	mu      sync.Mutex
	server  *grpc.Server
	stopped bool
}

func (s *stopper) newServer(opts []grpc.ServerOption) *grpc.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = grpc.NewServer(opts...)
	if s.stopped {
		s.server.Stop()
	}
	return s.server
}

func (s *stopper) stop() {
	s.mu.Lock()
	s.stopped = true
	server := s.server
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

func (s *stopper) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server != nil
}

func serveError(kind, err error) error {
	return &core.Error{Op: "serve", Kind: kind, Err: err}
}

// errorKeeper is a logger that remembers the last error: the only way in which go-plugin tells that
// it could not serve.
type errorKeeper struct {
	hclog.Logger
	mu   sync.Mutex
	last error
}

func newErrorKeeper(l hclog.Logger) *errorKeeper {
	if l == nil {
		l = hclog.NewNullLogger()
	}
	return &errorKeeper{Logger: l}
}

// Error implements hclog.Logger.
func (k *errorKeeper) Error(msg string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = errors.New(msg)
	for i := 1; i < len(args); i += 2 {
		if err, ok := args[i].(error); ok {
			k.last = fmt.Errorf("%s: %w", msg, err)
		}
	}
	k.Logger.Error(msg, args...)
}

func (k *errorKeeper) err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}
