// Package conns keeps the connections that go-plugin makes. It does not close those of which it thinks
// that they never came up.
package conns

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// Conns are the connections of one session. All methods are safe for concurrent use. The zero value is
// ready.
type Conns struct {
	mu    sync.Mutex
	conns map[*grpc.ClientConn]struct{}
}

// Keep is a grpc.StreamClientInterceptor: go-plugin opens streams of its own first thing.
func (c *Conns) Keep(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
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

// Close closes them all.
func (c *Conns) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cc := range c.conns {
		_ = cc.Close() // fails if it is closed already
	}
}
