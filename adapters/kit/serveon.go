package kit

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

// ServeOn serves p to a host that has come to a process which it did not start, until the host ends the session, dies, or ctx ends: then it
// returns nil. side is the session's side socket, and conn the connection for gRPC; ServeOn takes both over. Any number of hosts can be served
// at the same time, each with a producer of its own. It returns an error if it could not serve.
//
// When ServeOn returns, no lease is needed any more, but calls of p's methods may still run, with contexts that have ended.
func ServeOn(ctx context.Context, p contract.Producer, side *fdpass.Conn, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := wire.NewServer(p, side)
	if err := server.Admit(); err != nil {
		return serveError(core.ErrUnavailable, err)
	}
	rpc := grpc.NewServer()
	server.Register(rpc)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		watchHost(side, server, func() {}) // the program runs already
	})
	stop := context.AfterFunc(ctx, rpc.Stop)
	err := rpc.Serve(newOnce(conn))
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}
	stop()
	cancel()
	rpc.Stop()
	_ = side.Close() // ends watchHost
	watching.Wait()
	if err = errors.Join(err, server.Close()); err != nil {
		return serveError(core.ErrUnavailable, err)
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
