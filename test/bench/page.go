package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// page is "ndbridge inspect", and a browser that has its page open.
type page struct {
	command *exec.Cmd
	conn    *websocket.Conn
	ended   chan error

	mu sync.Mutex
	to chan said // nil: nobody listens
}

// said is what the page is told, as far as it is of interest here.
type said struct {
	Topic  string
	Name   string
	Series []struct {
		Name  string
		Times []float64
	}
	Events  []alarmed
	Figures json.RawMessage // of an array
	Torn    bool            // of a picture
	points  []byte          // of a picture
}

// alarmed is an alarm, as the page and the command line have it.
type alarmed struct {
	Name, Alarm string
	Step        *float64

	at time.Time
}

func openPage(ctx context.Context, opts options, socket string, args ...string) (_ *page, err error) {
	p := &page{ended: make(chan error, 1)}
	var stdout io.Reader
	if p.command, stdout, err = startCommand(ctx, opts, append([]string{"inspect", "--attach", socket}, args...)...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = p.command.Process.Kill()
			_ = p.command.Wait() // it was killed
		}
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("ndbridge inspect has no address: %w", err)
	}
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(r) // which gives the cookie
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close() // the page itself is of no interest
	address.Path, address.RawQuery = "/socket", ""
	p.conn, response, err = websocket.Dial(ctx, address.String(), &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Origin": {address.Scheme + "://" + address.Host}},
	})
	if err != nil {
		return nil, err
	}
	if response.Body != nil {
		_ = response.Body.Close() // there is none
	}
	p.conn.SetReadLimit(1 << 26)
	go p.read(ctx)
	return p, nil
}

// startCommand starts ndbridge, and gives what it prints.
func startCommand(ctx context.Context, opts options, args ...string) (*exec.Cmd, io.Reader, error) {
	c := exec.CommandContext(ctx, opts.ndbridge, args...)
	c.Stderr, c.Env = opts.program, append(os.Environ(), "NDBRIDGE_LIB="+opts.lib)
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	return c, stdout, err
}

// look has the page show an array.
func (p *page) look(ctx context.Context, look string) error {
	return p.conn.Write(ctx, websocket.MessageText, []byte(`{"look": {`+look+`}}`))
}

// read takes all that the page is told.
func (p *page) read(ctx context.Context) {
	for {
		kind, text, err := p.conn.Read(ctx)
		if err != nil {
			p.ended <- err
			return
		}
		var m said
		if kind == websocket.MessageBinary {
			n := 4 + binary.LittleEndian.Uint32(text)
			text, m.points = text[4:n], text[n:]
		}
		if json.Unmarshal(text, &m) != nil {
			continue
		}
		p.mu.Lock()
		select {
		case p.to <- m:
		default:
		}
		p.mu.Unlock()
	}
}

func (p *page) listen(to chan said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// hear begins something, and gives what the page is told from then on to a function, until that says that it is enough.
func (p *page) hear(ctx context.Context, about string, begin func() error, enough func(m said) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	to := make(chan said, 1024)
	p.listen(to)
	defer p.listen(nil)
	if err := begin(); err != nil {
		return err
	}
	for {
		select {
		case m := <-to:
			if enough(m) {
				return nil
			}
		case err := <-p.ended:
			return fmt.Errorf("the page has ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the page is told nothing of %s: %w", about, ctx.Err())
		}
	}
}

func (p *page) close() error {
	_ = p.conn.CloseNow() // the command ends, whatever it says
	_ = p.command.Process.Signal(os.Interrupt)
	_ = p.command.Wait() // its status is that of an interrupt
	return nil
}
