// Command ndbridge-flight serves the arrays of a Python program by Arrow Flight: of one that it starts, or of one that runs already and
// listens.
//
//	ndbridge-flight -script camera.py
//	ndbridge-flight -attach trainer -listen unix:flight.sock
//
// It checks nobody: who can connect can read all arrays of the program. So it listens on this machine only, unless it is told
// otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/bridges/arrow/flight"
)

// patience is how long clients may go on reading after the end.
const patience = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "ndbridge-flight:", err)
		os.Exit(1)
	}
}

type options struct{ listen, python, script, attach string }

// run serves until ctx or the program ends. It says on out where it listens.
func run(ctx context.Context, out, usage io.Writer, args []string) (err error) {
	var o options
	flags := flag.NewFlagSet("ndbridge-flight", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8815", "the `address` to listen on, or unix:PATH")
	flags.StringVar(&o.script, "script", "", "start this Python `file`; its arguments follow")
	flags.StringVar(&o.python, "python", "", "the `interpreter` that starts it; without it python3")
	flags.StringVar(&o.attach, "attach", "", "come to the program of this `name` that listens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	session, end, err := o.open(ctx, flags.Args())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	listener, err := o.listener(ctx)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true)) // Arrow's own server cannot end before its clients
	arrowflight.RegisterFlightServiceServer(server, flight.New(session))
	if _, err := fmt.Fprintf(out, "serving on %s\n", uri(listener.Addr())); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
	case <-session.Done():
		err = session.Err()
	case err := <-served:
		return err
	}
	shutDown(server)
	return errors.Join(err, <-served)
}

// shutDown lets clients take what they are being sent, for as long as patience.
func shutDown(server *grpc.Server) {
	defer time.AfterFunc(patience, server.Stop).Stop()
	server.GracefulStop()
}

// open starts the program, or comes to it. The function end ends the session.
func (o options) open(ctx context.Context, args []string) (session *hostplugin.Session, end func() error, err error) {
	switch {
	case (o.script == "") == (o.attach == ""):
		return nil, nil, &core.Error{Op: "serve", Kind: core.ErrConfig, Err: errors.New("which program?"), Remedy: "give either -script or -attach"}
	case o.script != "":
		session, err = hostplugin.Run(ctx, hostplugin.Program{Script: o.script, Python: o.python, Args: args})
		if err != nil {
			return nil, nil, err
		}
		return session, session.Close, nil
	}
	host, err := hostplugin.New(hostplugin.Config{})
	if err != nil {
		return nil, nil, err
	}
	session, err = host.Attach(ctx, hostplugin.Name(o.attach))
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return session, host.Close, nil
}

func (o options) listener(ctx context.Context) (net.Listener, error) {
	if path, ok := strings.CutPrefix(o.listen, "unix:"); ok {
		return new(net.ListenConfig).Listen(ctx, "unix", path)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
}

// uri is the address as clients of Flight want it.
func uri(a net.Addr) string {
	if a.Network() == "unix" {
		return "grpc+unix://" + a.String()
	}
	return "grpc://" + a.String()
}
