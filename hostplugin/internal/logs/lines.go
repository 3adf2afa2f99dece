package logs

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

const (
	// maxLine bounds what is kept of one line of a program's output, in bytes.
	maxLine = 64 << 10
	// tailLines and tailBytes bound what is kept for the report of a program's end.
	tailLines = 20
	tailBytes = 8 << 10

	cutMark = " [cut at 64 KiB]"
)

// lineSplitter cuts a stream of bytes into lines. Of a line longer than maxLine it gives the
// beginning as soon as it has it, and drops the rest, so that its memory stays bounded.
type lineSplitter struct {
	emit     func(line []byte, cut bool) // the bytes are valid until it returns
	partial  []byte
	skipping bool // until the end of a line that was cut
}

func (s *lineSplitter) write(p []byte) {
	for len(p) > 0 {
		head, rest, ended := bytes.Cut(p, []byte{'\n'})
		s.add(head)
		if ended {
			s.end()
		}
		p = rest
	}
}

func (s *lineSplitter) add(p []byte) {
	if s.skipping {
		return
	}
	if room := maxLine - len(s.partial); len(p) > room {
		s.partial = append(s.partial, p[:room]...)
		s.emit(s.partial, true)
		s.partial, s.skipping = s.partial[:0], true
		return
	}
	s.partial = append(s.partial, p...)
}

func (s *lineSplitter) end() {
	if !s.skipping {
		s.emit(s.partial, false)
	}
	s.partial, s.skipping = s.partial[:0], false
}

// finish gives the last line if the stream ended within it.
func (s *lineSplitter) finish() {
	if len(s.partial) > 0 {
		s.end()
	}
}

// lineText makes text of a line of output: valid UTF-8, and of a progress bar, which returns to the
// line's begin again and again, its last state.
func lineText(line []byte, cut bool) string {
	line = bytes.TrimRight(line, "\r")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 && !cut {
		line = line[i+1:]
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if cut {
		text += cutMark
	}
	return text
}

// Tail keeps the last lines of a stream, for the report of a program's end. It is safe for concurrent
// use.
type Tail struct {
	mu    sync.Mutex
	lines []string
	size  int
	stack bool // in the stacks that Go prints when it ends a process, hundreds of lines after the reason
}

func (t *Tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stack = inStack(line, t.stack); t.stack {
		return
	}
	if len(line) > tailBytes {
		line = strings.ToValidUTF8(line[:tailBytes], "")
	}
	t.lines = append(t.lines, line)
	t.size += len(line)
	drop := 0
	for t.size > tailBytes || len(t.lines)-drop > tailLines {
		t.size -= len(t.lines[drop])
		drop++
	}
	t.lines = slices.Delete(t.lines, 0, drop)
}

// inStack tells whether a line is one of Go's stacks; after says whether the line before it is.
func inStack(line string, after bool) bool {
	switch {
	case line == "runtime stack:", strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, "]:"):
		return true
	case line == "", strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "created by "), strings.HasSuffix(line, ")"):
		return after
	}
	return false
}

// Text gives the lines, oldest first, without empty ones at either end.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Trim(strings.Join(t.lines, "\n"), "\n")
}
