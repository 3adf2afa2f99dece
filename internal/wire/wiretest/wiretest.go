// Package wiretest connects a host's client to a producer in the same process, over what they use
// between processes: gRPC on a Unix socket and a pair of seqpacket sockets.
package wiretest

import (
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// Options are the options of a Link. The zero value is useful.
type Options struct {
	Client   wire.ClientOptions
	Settings contract.Settings // sent by Open
	Handoff  handoff.Settings  // sent by Open
	Calls    calls.Settings    // sent by Open
	Status   func(wire.Status) // called on the host's side with each status message
	Closed   bool              // do not open the session
}

// Link is a client and a server that are connected.
type Link struct {
	Client *wire.Client             // the host's producer, opened
	Side   *wire.Side               // the host's end of the side socket
	Conn   grpc.ClientConnInterface // the host's connection, for calls that a client would not make
	Peer   *fdpass.Conn             // the program's end of the side socket

	server *grpc.Server
}

// Connect gives a client of p, opened with the zero settings, which ends with the test.
func Connect(tb testing.TB, p contract.Producer) *wire.Client {
	tb.Helper()
	return Dial(tb, p, Options{}).Client
}

// Dial connects a client to p. All that it makes ends with the test.
func Dial(tb testing.TB, p contract.Producer, opts Options) *Link {
	tb.Helper()
	var server *wire.Server
	tb.Cleanup(func() { // after the end of the calls
		if err := server.Close(); err != nil {
			tb.Errorf("closing the server: %v", err)
		}
	})
	return Serve(tb, func(side *fdpass.Conn, r grpc.ServiceRegistrar) {
		server = wire.NewServer(p, side)
		server.Register(r)
	}, opts)
}

// Serve connects a client to whatever register makes a gRPC server serve: for servers that break the
// rules.
func Serve(tb testing.TB, register func(*fdpass.Conn, grpc.ServiceRegistrar), opts Options) *Link {
	tb.Helper()
	host, file, err := fdpass.Pair()
	if err != nil {
		tb.Fatal(err)
	}
	peer, err := fdpass.FromFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "unix", "") // a free abstract address, "@00001"
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true)) // or they outlive the test, and look like a leak
	register(peer, server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	cc, err := grpc.NewClient("unix-abstract:"+listener.Addr().String()[1:], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	l := &Link{Side: wire.NewSide(host, opts.Status, nil), Conn: cc, Peer: peer, server: server}
	l.Client = wire.NewClient(cc, l.Side, opts.Client)
	tb.Cleanup(func() {
		err := errors.Join(l.Client.Close(), cc.Close())
		server.Stop()
		if err := errors.Join(err, <-served, l.Side.Close(), peer.Close()); err != nil {
			tb.Errorf("closing the link: %v", err)
		}
	})
	if !opts.Closed {
		if _, err := l.Client.Open(tb.Context(), opts.Settings, wire.Wish{Handoff: opts.Handoff, Calls: opts.Calls}); err != nil {
			tb.Fatalf("open: %v", err)
		}
	}
	return l
}

// Kill does to the connection what the program's death does: its end of the side socket and of the
// gRPC connection close at once.
func (l *Link) Kill(tb testing.TB) {
	tb.Helper()
	if err := l.Peer.Close(); err != nil {
		tb.Error(err)
	}
	l.server.Stop()
}
