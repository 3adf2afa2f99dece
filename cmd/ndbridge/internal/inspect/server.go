package inspect

import (
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/internal/watch"
)

//go:embed web
var assets embed.FS

// pages is what the server serves.
func pages() fs.FS {
	sub, err := fs.Sub(assets, "web")
	if err != nil {
		panic(err) // the name is right
	}
	return sub
}

// Options says what is served, and to whom. The zero value of each field but Session is useful.
type Options struct {
	Session  *hostplugin.Session // closed by the caller
	Program  string              // its name, for people
	Attached bool                // it was running already, and goes on

	Listen      string           // an address to listen at; "": any port of 127.0.0.1
	Certificate *tls.Certificate // nil: http on loopback, and a self-made one elsewhere
	Password    string           // asked for in place of a token; a must elsewhere than on loopback

	Budget float64       // the share of one core's time that reading may take; 0: a hundredth
	Alarms []watch.Alarm // of all arrays; none: NaN and infinities, of numbers and of the arrays that are shown
	Step   string        // the name of the program's count of its steps; "": alarms do not say at which step they were raised
	Logger *slog.Logger

	haste int // how many times as fast arrays are listed and recorded, for a test; 0: once
}

// often is a time between two looks, in haste.
func (o *Options) often(usual time.Duration) time.Duration {
	return usual / time.Duration(max(o.haste, 1))
}

// Server serves the page of one program.
type Server struct {
	ctx      context.Context //nolint:containedctx // of requests, which have none that ends with the server
	end      context.CancelCauseFunc
	options  Options
	guard    *guard
	listener net.Listener
	http     http.Server
	hub      *hub
	sockets  sync.WaitGroup
	print    string

	hard    context.Context //nolint:containedctx // as ctx; its end closes the connections of websockets without a word
	abandon context.CancelFunc
}

// New listens, and serves nothing yet. The error wraps core.ErrConfig, core.ErrUnavailable (the address is taken) or says what else
// is wrong with the address. The caller calls Run, once.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Budget == 0 {
		o.Budget = watch.DefaultBudget
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, listenError(o.Listen, core.ErrConfig, err, "give an address and a port, such as 127.0.0.1:8080; port 0 is any")
	}
	near := loopback(host)
	if !near && o.Password == "" {
		return nil, listenError(o.Listen, core.ErrConfig, errors.New("others can reach that address, and there is no password"),
			"give one with --password-file, or listen at 127.0.0.1 and forward the port with ssh -L")
	}
	names := hostNames()
	s := &Server{options: o}
	if !near && o.Certificate == nil {
		made, err := selfMade(append(names, ownAddresses(host)...))
		if err != nil {
			return nil, err
		}
		s.options.Certificate, s.print = &made, fingerprint(made)
	}
	if c := s.options.Certificate; c != nil && c.Leaf != nil {
		names = append(names, c.Leaf.DNSNames...)
	}
	s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, listenError(o.Listen, core.ErrUnavailable, err, "give another --listen; port 0 is any that is free")
	}
	s.guard = newGuard(s.listener.Addr(), s.options.Certificate != nil, o.Password, names)
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.hard, s.abandon = context.WithCancel(context.WithoutCancel(ctx))
	s.hub = newHub(&s.options)
	return s, nil
}

func listenError(address string, kind, err error, remedy string) error {
	if inner, ok := errors.AsType[*net.OpError](err); ok {
		err = inner.Err
	}
	return &core.Error{Op: "listen", Object: address, Kind: kind, Err: err, Remedy: remedy}
}

// loopback reports whether only this machine can reach a host.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// ownAddresses are those that a certificate for a host is for: all of the machine's if it listens everywhere.
func ownAddresses(host string) []string {
	addr, err := netip.ParseAddr(host)
	if host != "" && (err != nil || !addr.IsUnspecified()) {
		return []string{host}
	}
	names := []string{"127.0.0.1", "::1"}
	all, _ := net.InterfaceAddrs() // without them the certificate is for fewer names
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			names = append(names, ip.IP.String())
		}
	}
	return names
}

// Address is what a browser opens: with a token in it, unless there is a password.
func (s *Server) Address() string {
	host := s.listener.Addr().String()
	if name, port, err := net.SplitHostPort(host); err == nil {
		if addr, err := netip.ParseAddr(name); err == nil && addr.IsUnspecified() {
			host = net.JoinHostPort(hostNames()[len(hostNames())-1], port)
		}
	}
	u := url.URL{Scheme: s.guard.scheme, Host: host, Path: "/"}
	if s.guard.token != "" {
		u.RawQuery = url.Values{"token": {s.guard.token}}.Encode()
	}
	return u.String()
}

// Fingerprint is that of a self-made certificate, as browsers show it, or "".
func (s *Server) Fingerprint() string { return s.print }

// Run serves until ctx ends or the program is gone, and tells the pages which. It returns nil when ctx has ended or the
// program has ended well, and otherwise why the program is gone.
func (s *Server) Run(ctx context.Context) error {
	defer s.end(nil)
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(pages()))
	mux.HandleFunc("GET /socket", s.socket)
	mux.Handle("GET /metrics", s.hub.recorder.sampler.Handler())
	mux.Handle("GET /stats.json", s.hub.recorder.sampler.Handler())
	mux.HandleFunc("GET /export/{kind}", s.export)
	s.http = http.Server{
		Handler: s.guard.protect(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug), MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	listener := s.listener
	if c := s.options.Certificate; c != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*c}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	reading, stop := context.WithCancel(ctx)
	s.hub.start(reading)
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(listener) }()

	var err error
	select {
	case <-ctx.Done():
		s.hub.ended("ndbridge inspect has ended")
	case <-s.options.Session.Done():
		err = s.options.Session.Err()
		s.hub.gone(err)
	case err = <-served:
		served <- nil
		err = fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	stop()
	s.hub.wait()
	s.end(errEnded) // the websockets send what they have, and close
	s.drain()       //nolint:contextcheck // that of the caller may have ended
	<-served
	return err
}

// drain gives pages a moment to take what there is to say.
func (s *Server) drain() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 2*time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // what is left is somebody who does not read
	}
	defer context.AfterFunc(ctx, s.abandon)()
	s.sockets.Wait()
	s.abandon()
}
