package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/internal/prose"
	"github.com/ndbridge/ndbridge/internal/render"
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

// newConsole makes a console of a writer, which is a terminal or not.
func newConsole(w io.Writer) *console {
	_, tty := render.Columns(w)
	return &console{w: w, tty: tty}
}

// Unwrap gives the writer, for those who ask what it is.
func (c *console) Unwrap() io.Writer { return c.w }

// redirect writes to another writer, until restore is called: while standard output draws on the whole terminal.
func (c *console) redirect(w io.Writer) (restore func()) {
	c.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, tty := c.w, c.tty
	c.w, c.tty = w, false
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.w, c.tty = before, tty
	}
}

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

// Progress says what is under way from now on, if it takes long.
func (c *console) Progress(format string, args ...any) {
	if !c.tty {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.doing = time.Now(), prose.Line(fmt.Sprintf(format, args...))
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

// Stop ends the progress and takes it off the terminal. It is idempotent.
func (c *console) Stop() {
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
