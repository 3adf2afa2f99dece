// Package logs turns what programs print, and what go-plugin logs, into log records of the host.
package logs

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Sink is where the bytes of one stream of a program go.
type Sink struct {
	Stream string    // "stdout" or "stderr"
	Raw    io.Writer // takes the bytes as they are; nil: nobody does
	Log    *Writer   // takes the lines; nil: nobody does
	Tail   *Tail     // takes the last lines; nil: nobody does
}

// Output takes the bytes of one stream. Its memory is bounded, whatever comes.
type Output struct {
	sink  Sink
	first func(line string)

	mu     sync.Mutex
	split  lineSplitter
	handed atomic.Bool // somebody else's writer or logger has what came, and may keep it for ever
}

// NewOutput makes an output to sink. The first line goes to the function first instead, if that is
// not nil, and is not part of the output.
func NewOutput(sink Sink, first func(line string)) *Output {
	o := &Output{sink: sink, first: first}
	o.split.emit = o.line
	return o
}

// Write implements io.Writer. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if o.first != nil {
		i := bytes.IndexByte(p, '\n') + 1
		if i == 0 {
			i = len(p)
		}
		o.split.write(p[:i])
		p = p[i:]
	}
	if len(p) == 0 {
		return n, nil
	}
	if o.sink.Log != nil || o.sink.Tail != nil {
		o.split.write(p)
	}
	if o.sink.Raw != nil {
		o.handed.Store(true)
		_, _ = o.sink.Raw.Write(p) // its owner sees the error; the program must not suffer from it
		o.handed.Store(false)
	}
	return n, nil
}

// finish takes the last line, if it has no end.
func (o *Output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.split.finish()
}

func (o *Output) line(line []byte, cut bool) {
	text := lineText(line, cut)
	if o.first != nil {
		o.first(text)
		o.first = nil
		return
	}
	if o.sink.Tail != nil {
		o.sink.Tail.add(text)
	}
	if o.sink.Log != nil {
		o.handed.Store(true)
		o.sink.Log.put(record{stream: o.sink.Stream, text: text})
		o.handed.Store(false)
	}
}

// Pipe is the reading end of a pipe that a program writes to.
type Pipe struct {
	file *os.File
	out  *Output
}

// NewPipe makes a pipe whose bytes go to out. The writing end is for the program; the caller owns it.
// The pipe must be read or closed.
func NewPipe(out *Output) (*Pipe, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &Pipe{file: r, out: out}, w, nil
}

// Read takes what comes until all writing ends are closed, or Stop. Then it closes the pipe.
func (p *Pipe) Read() {
	defer p.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := p.file.Read(buf)
		_, _ = p.out.Write(buf[:n]) // never fails
		if err != nil {
			break
		}
	}
	p.drain(buf)
	p.out.finish()
}

// Stop makes Read return when it has taken what is in the pipe now, even if some descendant of the
// program still holds a writing end.
func (p *Pipe) Stop() { _ = p.file.SetReadDeadline(time.Now()) } // fails only once it is closed

// HeldUp reports whether a writer or a logger, and not the pipe, is what Read waits for.
func (p *Pipe) HeldUp() bool { return p.out.handed.Load() }

// Close closes a pipe that is not read.
func (p *Pipe) Close() { _ = p.file.Close() } // only read from: nothing can be lost

// drain takes what lies in the pipe, without waiting, past the deadline that Stop has set.
func (p *Pipe) drain(buf []byte) {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // fails only if the file is closed
		left, err := waiting(fd) // others may go on writing for ever
		for err == nil && left > 0 {
			var n int
			n, err = readFD(fd, buf[:min(left, len(buf))])
			if n <= 0 {
				return
			}
			left -= n
			_, _ = p.out.Write(buf[:n]) // never fails
		}
	})
}
