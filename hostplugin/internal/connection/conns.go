package connection

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// conns keeps the connections that go-plugin makes for one session, since go-plugin does not close those of which it
// thinks that they never came up. All methods are safe for concurrent use. The zero value is ready.
type conns struct {
	mu    sync.Mutex
	conns map[*grpc.ClientConn]struct{}
}

// keep is a grpc.StreamClientInterceptor: go-plugin opens streams of its own first thing.
func (c *conns) keep(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	c.mu.Lock()
	if c.conns == nil {
		c.conns = make(map[*grpc.ClientConn]struct{})
	}
	c.conns[cc] = struct{}{}
	c.mu.Unlock()
	return streamer(ctx, desc, cc, method, opts...)
}

// close closes them all.
func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cc := range c.conns {
		_ = cc.Close() // fails if it is closed already
	}
}
