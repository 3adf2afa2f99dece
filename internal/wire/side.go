package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/fdpass"
)

// A descriptor's message is its kind and the token of the request that asked for it.
const (
	descriptorKind = 'D'
	descriptorSize = 1 + 8
)

// forkedMessage is what a program sends when it has forked.
const forkedMessage = "F"

// ListeningMessage is what the plugin sends, before it prints the handshake's line, with a descriptor of
// the socket at which it listens.
const ListeningMessage = "L"

// greetingKind begins the message in which the plugin of a running program says what go-plugin's handshake line says of one that was started.
const greetingKind = 'H'

// Greeting is what the plugin sends to a host that has come to a running program, before it serves it.
func Greeting() []byte {
	line := fmt.Sprintf("%d|%d|unix||%s|", CoreVersion, ProtocolVersion, "grpc")
	return append([]byte{greetingKind}, line...)
}

// listenWait bounds the wait for that message.
const listenWait = time.Second

// openedMessage is what the host sends when it has the answer to Open. A program may end as soon as
// its script runs, so none runs before.
const openedMessage = "O"

// Opened reports whether a message from the host says that it has the session open.
func Opened(msg []byte) bool { return string(msg) == openedMessage }

// Side is the host's end of the side socket: it takes the program's status messages and the
// descriptors that it sends. It needs no other party to be drained, so a program can never block on
// it. All methods are safe for concurrent use.
type Side struct {
	conn   *fdpass.Conn
	status func(Status)
	forked func()

	//nolint:containedctx // the socket's own lifetime, which ends with the reason as its cause
	ctx context.Context
	end context.CancelCauseFunc

	listening chan arrival // has room for one
	greeting  chan string  // likewise

	mu       sync.Mutex
	expected map[uint64]chan arrival // each has room for one
}

// arrival is what came for one token: a file or an error.
type arrival struct {
	file *os.File
	err  error
}

// NewSide starts to read conn, which it takes over, until its end or Close. It calls said, if that
// is not nil, with each status message in order, and forked, if that is not nil, each time that the
// program has forked, both from one goroutine; they must not block long and must not call Close.
// Messages of other kinds are ignored, and descriptors that nobody asked for are closed.
func NewSide(conn *fdpass.Conn, said func(Status), forked func()) *Side {
	s := &Side{
		conn: conn, status: said, forked: forked,
		listening: make(chan arrival, 1),
		greeting:  make(chan string, 1),
		expected:  make(map[uint64]chan arrival),
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	go s.read()
	return s
}

// Done is closed when the program has closed its end, which includes that it died, and after Close.
func (s *Side) Done() <-chan struct{} { return s.ctx.Done() }

// Err is nil until Done is closed, then [io.EOF] if the program closed its end, [os.ErrClosed] after
// Close, and else what went wrong.
func (s *Side) Err() error { return context.Cause(s.ctx) }

// Close closes the host's end, which tells the program to end, and waits until no status call runs
// any more. It is idempotent.
func (s *Side) Close() error {
	err := s.conn.Close()
	<-s.ctx.Done()
	return err
}

func (s *Side) read() {
	for {
		msg, files, err := s.conn.Recv()
		if err != nil && !errors.Is(err, fdpass.ErrTruncated) {
			// The end: whoever waits for a descriptor learns it from Done.
			if closeErr := s.conn.Close(); closeErr != nil {
				err = errors.Join(err, closeErr)
			}
			s.end(err)
			select {
			case a := <-s.listening:
				a.discard()
			default:
			}
			return
		}
		s.dispatch(msg, files, err)
	}
}

func (s *Side) dispatch(msg []byte, files []*os.File, truncated error) {
	descriptor := func() arrival {
		a := arrival{err: truncated}
		if len(files) == 1 {
			a.file, files = files[0], nil
		} else if truncated == nil {
			a.err = fmt.Errorf("a descriptor message came with %d descriptors", len(files))
		}
		return a
	}
	switch {
	case len(msg) == descriptorSize && msg[0] == descriptorKind:
		s.deliver(binary.LittleEndian.Uint64(msg[1:]), descriptor())
	case string(msg) == ListeningMessage:
		a := descriptor()
		select {
		case s.listening <- a:
		default: // a second one
			a.discard()
		}
	case len(msg) > 0 && msg[0] == greetingKind:
		select {
		case s.greeting <- string(msg[1:]):
		default: // a second one
		}
	case string(msg) == forkedMessage && s.forked != nil:
		s.forked()
	case len(msg) > 0 && msg[0] == '{' && s.status != nil:
		m, err := ParseStatus(msg)
		if err = errors.Join(truncated, err); err != nil {
			m = Status{Stage: StageError, Kind: KindProtocol, Message: err.Error()}
		}
		s.status(m)
	}
	for _, f := range files {
		_ = f.Close() // unwanted, and only read from: nothing can be lost
	}
}

// Listening gives the socket at which the plugin listens, once. The caller closes the file, which is
// there to be connected to.
func (s *Side) Listening(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listenWait, errors.New("the plugin has not sent the socket at which it listens"))
	defer cancel()
	select {
	case a := <-s.listening:
		return a.file, a.err
	case <-s.Done():
		return nil, s.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Greeting gives what the plugin of a running program says, once, in the form of go-plugin's handshake line.
func (s *Side) Greeting() <-chan string { return s.greeting }

// sayOpened tells the program that the host has the session open. A program that is gone by now is
// noticed anyway.
func (s *Side) sayOpened() { _ = s.conn.Send([]byte(openedMessage)) }

// deliver hands what came to the request that expects it, or closes it.
func (s *Side) deliver(token uint64, a arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.expected[token]; ok {
		delete(s.expected, token)
		ch <- a // has room, since the token is gone now
		return
	}
	a.discard()
}

func (a arrival) discard() {
	if a.file != nil {
		_ = a.file.Close() // never used: nothing can be lost
	}
}

// expect announces a descriptor. The caller must call forget in the end.
func (s *Side) expect(token uint64) <-chan arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan arrival, 1)
	s.expected[token] = ch
	return ch
}

// forget ends the expectation and closes what came for it and was not taken.
func (s *Side) forget(token uint64, ch <-chan arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, token)
	select {
	case a := <-ch:
		a.discard()
	default:
	}
}

// sendDescriptor is the plugin's part: it sends a duplicate of f for the request with that token.
func sendDescriptor(conn *fdpass.Conn, token uint64, f *os.File) error {
	return conn.Send(descriptorMessage(token), f)
}

func descriptorMessage(token uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{descriptorKind}, token)
}
