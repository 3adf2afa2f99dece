// Command serve is an HTTP service: a POST of an image (PNG or JPEG) to /classify is answered with its classes as JSON. The
// model is a Python program, whose function sees the images of many requests as one array, in the host's memory. The README
// beside this file says how to run it.
//
// /healthz says that the service runs, /readyz that it takes images, and /metrics has numbers for Prometheus. SIGTERM ends it
// in order: it takes no more requests, finishes those that are under way, and closes the model.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// drainTime is what requests that are under way have to finish in.
const drainTime = 20 * time.Second

func main() {
	listen := flag.String("listen", "localhost:8080", "the address to serve at")
	python := flag.String("python", "", "the interpreter (default python3)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err == nil {
		err = run(ctx, listener, hostplugin.Program{Script: "model.py", Python: *python})
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves at a listener, which it closes, until ctx ends or the model does.
func run(ctx context.Context, listener net.Listener, model hostplugin.Program) error {
	session, err := hostplugin.Run(ctx, model)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	service, err := newService(ctx, session)
	if err != nil {
		return errors.Join(err, listener.Close(), session.Close())
	}
	server := &http.Server{Handler: service.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	slog.Info("serving", slog.String("address", listener.Addr().String()))
	select {
	case err = <-served:
	case <-session.Done(): // whoever runs the service starts it again
		err = session.Err()
	case <-ctx.Done():
	}
	service.draining.Store(true)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return errors.Join(err, server.Shutdown(drain), service.batch.Close(), session.Close()) //nolint:contextcheck // Close waits, whatever became of ctx
}
