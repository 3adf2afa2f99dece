// Package serving has what is the same in serving a host that started the process and one that came to it.
package serving

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// On serves p to a host that has come to a process which it did not start, until the host ends the session, dies, or ctx ends: then it
// returns nil. side is the session's side socket, and conn the connection for gRPC; On takes both over. Any number of hosts can be served
// at the same time, each with a producer of its own. It returns an error if it could not serve.
//
// When On returns, no lease is needed any more, but calls of p's methods may still run, with contexts that have ended.
func On(ctx context.Context, p contract.Producer, side *fdpass.Conn, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := wire.NewServer(p, side)
	if err := server.Admit(); err != nil {
		return Error(core.ErrUnavailable, err)
	}
	rpc := grpc.NewServer()
	server.Register(rpc)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		Watch(side, server, func() {}) // the program runs already
	})
	stop := context.AfterFunc(ctx, rpc.Stop)
	err := rpc.Serve(newOnce(conn))
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}
	stop()
	cancel()
	rpc.Stop()
	_ = side.Close() // ends Watch
	watching.Wait()
	if err = errors.Join(err, server.Close()); err != nil {
		return Error(core.ErrUnavailable, err)
	}
	return nil
}

// once is a listener to which one connection comes.
type once struct {
	conn   chan net.Conn
	addr   net.Addr
	closed chan struct{}
	close  func()
}

func newOnce(conn net.Conn) *once {
	l := &once{conn: make(chan net.Conn, 1), addr: conn.LocalAddr(), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	l.conn <- conn
	return l
}

// Accept implements net.Listener.
func (l *once) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *once) Close() error {
	l.close()
	select {
	case conn := <-l.conn: // nobody took it
		return conn.Close()
	default:
		return nil
	}
}

// Addr implements net.Listener.
func (l *once) Addr() net.Addr { return l.addr }

// Watch reads until the host has closed its end, hands descriptors to the server, and calls opened when the host says so. Other
// messages are of later versions.
func Watch(side *fdpass.Conn, server *wire.Server, opened func()) {
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

// Error is why a host cannot be served.
func Error(kind, err error) error {
	return &core.Error{Op: "serve", Kind: kind, Err: err}
}
