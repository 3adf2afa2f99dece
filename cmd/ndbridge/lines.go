package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/ndbridge/ndbridge/internal/prose"
)

// lines gives each line that is written to it to another writer, with a prefix, and without what a
// terminal obeys. It is safe for concurrent use. A line without an end is written by Flush.
type lines struct {
	w      io.Writer
	prefix string

	mu   sync.Mutex
	line []byte
	cut  int // bytes of the line that are not shown
}

// newLines makes lines for w.
func newLines(w io.Writer, prefix string) *lines { return &lines{w: w, prefix: prefix} }

// maxLine is how much of a line is shown: what a program prints is not what was asked for here.
const maxLine = 400

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		part := b[:end]
		if end == 0 {
			part = b
		}
		b = b[len(part):]
		room := max(maxLine-len(l.line), 0)
		l.line = append(l.line, part[:min(len(part), room)]...)
		l.cut += len(part) - min(len(part), room)
		if end > 0 {
			if err := l.put(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

// put writes the line, in one piece so that lines of several writers do not mix.
func (l *lines) put() error {
	line := l.prefix + prose.Text(string(bytes.TrimRight(l.line, "\r\n")))
	if l.cut > 1 {
		line += fmt.Sprintf(" ... (%d more bytes)", l.cut)
	}
	l.line, l.cut = l.line[:0], 0
	_, err := io.WriteString(l.w, line+"\n")
	return err
}

// Flush writes what has no end yet.
func (l *lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		_ = l.put() // standard error has no better place to go
	}
}
