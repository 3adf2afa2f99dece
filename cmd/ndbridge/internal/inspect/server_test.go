package inspect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// startProgram starts a program with numpy, which ends with the test.
func startProgram(t *testing.T, text string) *hostplugin.Session {
	t.Helper()
	python, lib := os.Getenv("NDBRIDGE_TEST_PYTHON"), os.Getenv("NDBRIDGE_LIB")
	if python == "" || lib == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON and NDBRIDGE_LIB are not set; run make test")
	}
	script := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := hostplugin.New(hostplugin.Config{
		Logger: slog.New(slog.DiscardHandler), LibDirs: []string{lib}, Programs: []hostplugin.Program{{Name: "program", Python: python, Script: script}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() }) // an error says that the program had to be killed
	session, err := host.Start(t.Context(), "program")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// serve runs a server until end is called, which waits for it.
func serve(t *testing.T, o Options) (server *Server, end func()) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	server, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	return server, func() {
		t.Helper()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// openPage opens the page's websocket.
func openPage(t *testing.T, server *Server) *websocket.Conn {
	t.Helper()
	address, err := url.Parse(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is self-made
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // the cookie is what counts
	address.Path, address.RawQuery = "/socket", ""
	conn, response, err := websocket.Dial(t.Context(), address.String(), &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Origin": {address.Scheme + "://" + address.Host}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close() // there is none
	}
	conn.SetReadLimit(1 << 26)
	return conn
}

// listenerThatTells tells when it accepts.
type listenerThatTells struct {
	net.Listener
	accepts chan struct{}
}

func (l *listenerThatTells) Accept() (net.Conn, error) {
	select {
	case l.accepts <- struct{}{}:
	default:
	}
	return l.Listener.Accept()
}

// TestFirstPage holds that what the first page asks for is not lost, however soon it comes: nobody is served before there is somebody who reads.
func TestFirstPage(t *testing.T) {
	t.Parallel()
	server, err := New(t.Context(), Options{Session: startProgram(t, "import numpy as np\na = np.arange(3)"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener := &listenerThatTells{server.listener, make(chan struct{}, 1)}
	server.listener = listener
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	server.hub.mu.Lock() // nobody can read
	go func() { served <- server.Run(ctx) }()
	select {
	case <-listener.accepts:
		t.Error("pages are served before there is somebody who reads")
	case <-time.After(100 * time.Millisecond):
	}
	server.hub.mu.Unlock()
	conn := openPage(t, server)
	showArray(t, conn, "a")
	_ = conn.CloseNow() // else the server waits for an answer
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// nextState is what the page is told next of an array.
func nextState(t *testing.T, conn *websocket.Conn, name string) state {
	t.Helper()
	for {
		kind, text, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var s state
		if kind != websocket.MessageText {
			continue
		}
		if err := json.Unmarshal(text, &struct{ Topic, Name *string }{&s.Topic, &s.Name}); err != nil {
			t.Fatal(err)
		}
		if s.Topic != "array" || s.Name != name {
			continue
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestNameWithoutArray has a name mean no array any more: whoever sees the last figures is told so, with each of them.
func TestNameWithoutArray(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np\na = np.arange(3)\nb = np.arange(1 << 20)\ndef replace(name, value): globals()[name] = value")
	server, end := serve(t, Options{Session: session})
	replace, err := session.Func(t.Context(), "replace")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} { // a is copied, b shared
		conn := openPage(t, server)
		showArray(t, conn, name)
		result, err := replace.Call(t.Context(), name, 1.5)
		if err == nil {
			err = result.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		s := nextState(t, conn, name)
		for s.Error == "" { // one may have been on its way
			s = nextState(t, conn, name)
		}
		for range 3 {
			if s = nextState(t, conn, name); s.Error == "" || s.Live || s.Number != "float" || s.DType != "int64" {
				t.Errorf("%+v", s)
			}
		}
		_ = conn.CloseNow() // else the server waits for an answer
	}
	end()
}

// TestPageThatSleeps ends the server while a page is open that does not answer: it waits for two seconds, not for the five of the websocket's.
func TestPageThatSleeps(t *testing.T) {
	t.Parallel()
	certificate, err := selfMade([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for way, c := range map[string]*tls.Certificate{"http": nil, "https": &certificate} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			server, end := serve(t, Options{Session: startProgram(t, "import numpy as np\na = np.arange(3)"), Certificate: c})
			conn := openPage(t, server)
			defer conn.CloseNow()
			showArray(t, conn, "a")
			begun := time.Now()
			end()
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("it has ended after %v", took)
			}
		})
	}
}
