package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/serving"
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

	// OwnDescriptors opens the files of arrays in a table of descriptors of their own. For plugins inside a
	// program that counts on the lowest number that is free.
	OwnDescriptors bool
}

// Serve serves p to the host that started this process, until the host ends the session, dies, or
// ctx ends: then it returns nil. It returns an error if it could not serve.
//
// If p is a contract.Waiter, the host can wait for it; if it is a contract.Configurer, it gets the host's
// settings. When Serve returns, no lease is needed any more, but calls of p's methods may still run,
// with contexts that have ended.
//
// Serve is called at most once in a process.
func Serve(ctx context.Context, p contract.Producer, opts ServeOptions) error {
	if err := checkCookie(opts); err != nil {
		return err
	}
	side, err := sideConn(opts.Side)
	if err != nil {
		return serving.Error(core.ErrUnavailable, fmt.Errorf("side socket: %w", err))
	}
	defer func() { _ = side.Close() }() // the process is at its end, or said so already
	if opts.OwnDescriptors {
		_ = shm.Separate(side.Descriptor()) // else the files are opened beside the program's
	}
	server := wire.NewServer(p, side)
	return errors.Join(serve(ctx, side, server, opts), server.Close())
}

func serve(ctx context.Context, side *fdpass.Conn, server *wire.Server, opts ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	opened := opts.Opened
	if opened == nil {
		opened = func() {}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel() // the host is gone
		serving.Watch(side, server, sync.OnceFunc(opened))
	})
	defer func() {
		cancel()
		_ = side.Close() // ends Watch
		watching.Wait()
	}()
	handshake := opts.Handshake
	if handshake == nil {
		handshake = os.Stdout
	}
	if err := wire.Serve(ctx, side, handshake, server.Register); err != nil {
		return serving.Error(core.ErrUnavailable, err)
	}
	return nil
}

// checkCookie checks that a host has started the process.
func checkCookie(opts ServeOptions) error {
	if os.Getenv(wire.CookieKey) == wire.CookieValue {
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
