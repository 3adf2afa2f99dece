package wiretest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/goplugin"
)

// Process is an executable plugin that runs, and the host's end of its connection.
type Process struct {
	Client *wire.Client   // not opened yet
	Side   *wire.Side     // the host's end of the side socket
	Plugin *plugin.Client // go-plugin's own, whose Kill ends the plugin as a host does
}

// Start runs an executable plugin as a host does: through go-plugin, with mutual TLS, with the side
// socket as descriptor 3, and connected to the socket that comes through it. All ends with the test.
func Start(tb testing.TB, cmd *exec.Cmd, opts Options) *Process {
	tb.Helper()
	conn, peer, err := fdpass.Pair()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{peer}
	sockets := wire.NewSocketDir(os.TempDir())
	cmd.Env = append(cmd.Environ(), wire.EnvSocketDir+"="+sockets)
	p := &Process{Side: wire.NewSide(conn, opts.Status, nil)}
	p.Plugin = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  goplugin.Handshake(),
		Plugins:          plugin.PluginSet{goplugin.Name: &goplugin.Plugin{Side: p.Side, Options: opts.Client}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              cmd,
		AutoMTLS:         true,
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions:  []grpc.DialOption{wire.Dialer(p.Side)},
	})
	tb.Cleanup(func() {
		p.Plugin.Kill()
		if p.Client != nil {
			_ = p.Client.Close() // never fails
		}
		if err := p.Side.Close(); err != nil {
			tb.Errorf("closing the side socket: %v", err)
		}
	})
	protocol, err := p.Plugin.Client()
	if closeErr := peer.Close(); closeErr != nil {
		tb.Fatal(closeErr)
	}
	if err != nil {
		tb.Fatalf("start: %v", err)
	}
	if _, err := os.Stat(sockets); !errors.Is(err, fs.ErrNotExist) {
		tb.Errorf("the plugin listens, and %s is still there: %v", sockets, err)
	}
	dispensed, err := protocol.Dispense(goplugin.Name)
	if err != nil {
		tb.Fatalf("dispense: %v", err)
	}
	client, ok := dispensed.(*wire.Client)
	if !ok {
		tb.Fatalf("go-plugin dispensed a %T", dispensed)
	}
	p.Client = client
	if !opts.Closed {
		if _, err := p.Client.Open(tb.Context(), opts.Settings, wire.Wish{Handoff: opts.Handoff, Calls: opts.Calls}); err != nil {
			tb.Fatalf("open: %v", err)
		}
	}
	return p
}
