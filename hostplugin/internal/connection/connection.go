// Package connection starts programs and opens sessions with the plugins in them, and ends them again.
package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/bootstrap"
	"github.com/ndbridge/ndbridge/hostplugin/internal/logs"
	"github.com/ndbridge/ndbridge/hostplugin/internal/process"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/goplugin"
)

const (
	// killDelay is how much longer than its time to end the host waits for a program that the plugin should have
	// killed, and how long for one that has not started.
	killDelay = time.Second

	// lastWordsWait bounds the wait for what a program that did not start has said on the side socket.
	lastWordsWait = time.Second

	// maxSocketDir is what the directory of a socket may be long: the path of a socket has at most 107
	// bytes, and plugins of earlier releases append a random name.
	maxSocketDir = 107 - len("/plugin1234567890")
)

// errStartTimeout is the cause of a start's end by its own time limit.
var errStartTimeout = errors.New("start timeout")

// errGreeting says that the program has not printed a line that is one of a plugin of this version.
var errGreeting = errors.New("no handshake")

// Options say what to start, and where to turn.
type Options struct {
	Program string       // its name
	Python  bool         // it is run by an interpreter
	Plugin  string       // the plugin's file
	Process process.Spec // without what concerns the handshake

	StartTimeout time.Duration
	StopTimeout  time.Duration // what the program has to end in when its session ends
	Wish         wire.Wish     // what the host wishes of shared memory

	Log            *slog.Logger // the program's
	Stdout, Stderr io.Writer    // instead of the log; may be nil

	Stray       func(contract.LeaseID)      // takes leases that nobody waits for any more
	Forked      func()                      // is called when the program has forked
	Unavailable func(context.Context) error // says why the program is gone
}

// Connection is a program with its plugin: what a session stands on. Client is there once Open has
// succeeded, and so is Handoff, unless there is no shared memory.
type Connection struct {
	opts      Options
	handshake *handshake     // nil: the program ran before the host came
	sockets   string         // where the plugin makes its socket, which it removes; of a program that was started
	plugin    *plugin.Client // nil until it listens
	conns     conns

	Process Process
	Side    *wire.Side
	Client  *wire.Client
	Handoff *handoff.Client

	python   chan struct{} // closed when Python runs the bootstrap
	lost     chan struct{} // closed when the plugin has said that it cannot go on
	mu       sync.Mutex
	statuses []wire.Status
	stream   net.Conn // for gRPC; nil for a program that was started
	dialed   bool     // gRPC has it
}

// New makes everything that a start needs, and starts nothing. Open must be called.
func New(opts Options) (*Connection, error) {
	conn, peer, err := fdpass.Pair()
	if err != nil {
		return nil, err
	}
	c := &Connection{opts: opts, sockets: wire.NewSocketDir(socketParent()), python: make(chan struct{}), lost: make(chan struct{})}
	c.handshake, err = newHandshake()
	if err == nil && opts.Python {
		err = conn.Send(bootstrap.Code())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(), peer.Close())
	}
	c.Side = wire.NewSide(conn, c.status, opts.Forked)
	spec := opts.Process
	spec.Env = slices.Concat(spec.Env, c.handshake.environment(c.sockets),
		[]string{"NDBRIDGE_STOP_TIMEOUT_MS=" + strconv.FormatInt(max(opts.StopTimeout.Milliseconds(), 1), 10)})
	c.Process = process.New(&spec, peer, process.Options{Log: opts.Log, Stdout: opts.Stdout, Stderr: opts.Stderr})
	return c, nil
}

// Sweep removes what earlier hosts could not.
func Sweep() { wire.SweepSocketDirs(socketParent()) }

// socketParent is where the plugin's directory for its socket goes: the usual place for what is
// temporary, unless its name is too long.
func socketParent() string {
	dir := os.TempDir()
	if len(wire.NewSocketDir(dir)) > maxSocketDir {
		return "/tmp"
	}
	return dir
}

// status takes what the program says about itself.
func (c *Connection) status(s wire.Status) {
	_, known := c.stage(s.Stage)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.Stage == wire.StageLost && !known:
		c.statuses = append(c.statuses, s)
		close(c.lost)
	case len(c.statuses) < 16: // a program has few stages; more is no news
		c.statuses = append(c.statuses, s)
		if s.Stage == wire.StagePython && !known {
			close(c.python)
		}
	}
}

// Lost is closed when the plugin has said that it cannot go on. Why gives its reason then.
func (c *Connection) Lost() <-chan struct{} { return c.lost }

// Why gives the reason that came with Lost.
func (c *Connection) Why() error {
	said, _ := c.stage(wire.StageLost)
	return fmt.Errorf("%s; %s", said.Message, said.Remedy)
}

// stage finds the first status of a stage.
func (c *Connection) stage(stage string) (wire.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.statuses {
		if s.Stage == stage {
			return s, true
		}
	}
	return wire.Status{}, false
}

// Open starts the program and opens the session with its plugin. If ctx ends first, the program is
// killed; a ctx that ends because of core.ErrClosed says that the host was closed. After an error nothing
// is left, and the error says all that is known.
func (c *Connection) Open(ctx context.Context, settings func() contract.Settings) error {
	starting, cancel := context.WithTimeoutCause(ctx, c.opts.StartTimeout, errStartTimeout)
	defer cancel()
	stop := context.AfterFunc(starting, func() { _ = c.Process.Kill(starting) }) // never fails; go-plugin knows no context
	err := c.begin(starting, settings)
	if !stop() {
		err = context.Cause(starting)
	}
	if err == nil {
		return nil
	}
	ended := context.Cause(starting) // before the end of the program can take time
	c.abort()                        //nolint:contextcheck // it ends what has started, whatever becomes of the call
	return c.startError(ctx, ended, err)
}

func (c *Connection) begin(ctx context.Context, settings func() contract.Settings) error {
	if err := c.Process.Start(ctx); err != nil {
		return err
	}
	client, err := c.reach(ctx)
	if err != nil {
		return err
	}
	if _, err := client.Open(ctx, settings(), c.opts.Wish); err != nil {
		return err
	}
	c.Handoff, err = client.OpenHandoff(ctx, c.opts.Wish.Handoff.Spin, c.opts.Stray)
	// A program that has ended already says why to who asks it for a lease.
	if err != nil && !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	return nil
}

// reach makes a client of the plugin once that has said that it listens.
func (c *Connection) reach(ctx context.Context) (*wire.Client, error) {
	connect := sync.OnceValues(c.connect)
	if c.attached() { // the connection is there: what it takes to use it need not wait for the plugin
		go func() {
			select {
			case <-c.python: // from now on the program's main thread leaves its processor to others
				go wire.Warm()
				_, _ = connect() // for below
			case <-c.Process.Exited():
			}
		}()
	}
	err := c.awaitGreeting(ctx)
	if line, ok := parseGreeting(c.Process.Greeting()); err == nil && (!ok || !line.current()) {
		err = errGreeting
	}
	if err == nil {
		return connect()
	}
	if c.attached() {
		c.closeStream()
		_, _ = connect() // it fails, or has made what End ends
	}
	return nil, err
}

// connect makes a client of the plugin. It waits for it where the program ran before.
func (c *Connection) connect() (*wire.Client, error) {
	address, config, dialer, err := c.address()
	if err != nil {
		return nil, err
	}
	c.plugin = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: goplugin.Handshake(),
		Plugins: plugin.PluginSet{goplugin.Name: &goplugin.Plugin{
			Side: c.Side, Options: wire.ClientOptions{Program: c.opts.Program, Unavailable: c.opts.Unavailable},
		}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Reattach: &plugin.ReattachConfig{
			Protocol: plugin.ProtocolGRPC, ProtocolVersion: wire.ProtocolVersion, Addr: address,
			ReattachFunc: func() (runner.AttachedRunner, error) { return c.Process, nil },
		},
		TLSConfig: config,
		Logger:    logs.ForGoPlugin(c.opts.Log),
		GRPCDialOptions: []grpc.DialOption{
			dialer,
			grpc.WithIdleTimeout(0), // there is no second connection
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: c.opts.StartTimeout}),
			grpc.WithStreamInterceptor(c.conns.keep),
		},
	})
	protocol, err := c.plugin.Client()
	if err != nil {
		return nil, err
	}
	dispensed, err := protocol.Dispense(goplugin.Name)
	if err != nil {
		return nil, err
	}
	client, ok := dispensed.(*wire.Client)
	if !ok {
		return nil, fmt.Errorf("go-plugin dispensed a %T", dispensed)
	}
	c.Client = client
	return client, nil
}

// address says where gRPC reaches the plugin, and how. The connection to a program that was not started is one of a pair of sockets.
func (c *Connection) address() (net.Addr, *tls.Config, grpc.DialOption, error) {
	if c.attached() {
		return &net.UnixAddr{Name: "pair", Net: "unix"}, nil, c.dialStream(), nil
	}
	line, _ := parseGreeting(c.Process.Greeting())
	address, config, err := c.handshake.accept(line)
	return address, config, wire.Dialer(c.Side), err
}

// abort ends what did not start.
func (c *Connection) abort() {
	_ = c.Process.Kill(context.Background()) // never fails
	c.Process.Discard()
	<-c.Process.Exited()
	// What the program said before its end may still be under way. A child of it may hold the socket.
	timeout := time.NewTimer(lastWordsWait)
	defer timeout.Stop()
	select {
	case <-c.Side.Done():
	case <-timeout.C:
	}
	_ = c.End() // a start has failed for a reason of its own
}

// End ends the program, if it was started, and everything around it. The side socket's end tells the plugin to end the program, which has
// Options.StopTimeout for that if it was open. The error says which memory could not be unmapped.
func (c *Connection) End() (err error) {
	_ = c.Side.Close() // its error would be that it is closed
	patience := killDelay
	if c.Client != nil {
		patience += c.opts.StopTimeout
	}
	guard := time.AfterFunc(patience, func() {
		_ = c.Process.Kill(context.Background()) // never fails
	})
	if c.Client != nil {
		<-c.Process.Exited() // go-plugin would kill it after two seconds
	}
	if c.plugin != nil {
		c.plugin.Kill()
	}
	guard.Stop()
	c.Process.Discard()
	<-c.Process.Exited()
	if c.Client != nil {
		_ = c.Client.Close() // never fails
	}
	if c.Handoff != nil {
		err = c.Handoff.Close()
	}
	c.conns.close()
	c.closeStream()
	c.Process.CloseLog()
	if !c.attached() {
		wire.RemoveSocketDir(c.sockets) // if the plugin was killed before it could
	}
	return err
}
