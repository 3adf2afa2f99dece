//go:build !linux

package fdpass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

// ErrTruncated is an error of Linux alone.
var ErrTruncated = errors.New("message truncated")

// Conn does not exist: descriptors are passed on Linux alone.
type Conn struct{}

func none() error {
	return fmt.Errorf("sockets with descriptors on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Pair fails.
func Pair() (*Conn, *os.File, error) { return nil, nil, none() }

// Peer is who listens at a socket.
type Peer struct{ PID, UID int }

// Dial fails.
func Dial(context.Context, string) (*Conn, Peer, error) { return nil, Peer{}, none() }

// StreamPair fails.
func StreamPair() (net.Conn, *os.File, error) { return nil, nil, none() }

// FromFD fails.
func FromFD(int) (*Conn, error) { return nil, none() }

// FromFile fails.
func FromFile(*os.File) (*Conn, error) { return nil, none() }

// Close fails.
func (*Conn) Close() error { return none() }

// Descriptor gives no descriptor.
func (*Conn) Descriptor() int { return -1 }

// Send fails.
func (*Conn) Send([]byte, ...*os.File) error { return none() }

// Recv fails.
func (*Conn) Recv() ([]byte, []*os.File, error) { return nil, nil, none() }

// SendOn fails.
func SendOn(int, []byte, *os.File) error { return none() }
