package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patienceForProgress is how long something may take before the user is told what goes on.
	patienceForProgress = time.Second
	progressInterval    = 500 * time.Millisecond
)

// console is standard error: whole lines from several writers, and on a terminal one line of progress
// below them. It is safe for concurrent use.
type console struct {
	w   io.Writer
	tty bool

	mu     sync.Mutex
	status string // the progress that is on the terminal now

	begun  time.Time
	doing  string
	end    chan struct{} // closed to end the goroutine that shows progress; nil if there is none
	shower sync.WaitGroup
}

func newConsole(w io.Writer, tty bool) *console { return &console{w: w, tty: tty} }

const eraseLine = "\r\x1b[K"

// Write writes above the line of progress.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != "" {
		c.status = ""
		if _, err := io.WriteString(c.w, eraseLine); err != nil {
			return 0, err
		}
	}
	return c.w.Write(p)
}

// progress says what is under way from now on, if it takes long.
func (c *console) progress(format string, args ...any) {
	if !c.tty {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.doing = time.Now(), fmt.Sprintf(format, args...)
	if c.end != nil {
		return
	}
	end := make(chan struct{})
	c.end = end
	c.shower.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.show()
			case <-end:
				return
			}
		}
	})
}

func (c *console) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := time.Since(c.begun); since > patienceForProgress {
		c.status = fmt.Sprintf("%s, %.0f s", c.doing, since.Seconds())
		_, _ = io.WriteString(c.w, eraseLine+c.status) // nobody depends on it
	}
}

// stop ends the progress and takes it off the terminal. It is idempotent.
func (c *console) stop() {
	c.mu.Lock()
	end := c.end
	c.end = nil
	c.mu.Unlock()
	if end == nil {
		return
	}
	close(end)
	c.shower.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != "" {
		c.status = ""
		_, _ = io.WriteString(c.w, eraseLine) // nobody depends on it
	}
}

// prefixed gives each line that is written to it to another writer, with a prefix. It is safe for
// concurrent use. A line without an end is written by flush.
type prefixed struct {
	w      io.Writer
	prefix string

	mu   sync.Mutex
	line []byte
	cut  int // bytes of the line that are not shown
}

// maxLine is how much of a line is shown: what a program prints is not what was asked for here.
const maxLine = 400

func (p *prefixed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		part := b[:end]
		if end == 0 {
			part = b
		}
		b = b[len(part):]
		room := max(maxLine-len(p.line), 0)
		p.line = append(p.line, part[:min(len(part), room)]...)
		p.cut += len(part) - min(len(part), room)
		if end > 0 {
			if err := p.put(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

// put writes the line, in one piece so that lines of several writers do not mix.
func (p *prefixed) put() error {
	line := append([]byte(p.prefix), bytes.TrimSuffix(p.line, []byte("\n"))...)
	if p.cut > 1 {
		line = fmt.Appendf(line, " ... (%d more bytes)", p.cut)
	}
	p.line, p.cut = p.line[:0], 0
	_, err := p.w.Write(append(line, '\n'))
	return err
}

func (p *prefixed) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) > 0 {
		_ = p.put() // standard error has no better place to go
	}
}
