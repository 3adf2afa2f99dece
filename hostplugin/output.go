package hostplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/hclogslog"
)

const (
	// logQueue is how many lines may wait for the logger.
	logQueue = 128
	// logPatience is how long a program waits for a logger that stands still before lines are
	// dropped. A logger may be slow, but it must not stop a program for good.
	logPatience = time.Second
)

// output reads one stream of a program for as long as the program lives, and never makes the
// program wait for long.
type output struct {
	stream string // "stdout" or "stderr"
	file   *os.File
	split  lineSplitter
	tail   *tail      // nil if nobody asks for it
	raw    io.Writer  // nil: lines go to the log
	log    *logWriter // nil if raw is set
	first  func(line string) // if set, takes the first line
}

// read copies the stream until its end: that of the file, or stop.
func (o *output) read() {
	o.split.emit = o.line
	buf := make([]byte, 32<<10)
	for {
		n, err := o.file.Read(buf)
		o.bytes(buf[:n])
		if err != nil {
			break
		}
	}
	o.drain(buf)
	o.split.finish()
	_ = o.file.Close() // read only: nothing to lose
}

// stop ends a read whose file stays open in some descendant of the program. What the program has
// written by now is still read.
func (o *output) stop() { _ = o.file.SetReadDeadline(time.Now()) } // fails only once it is closed

// drain reads what lies in the pipe, without waiting and past the deadline that stop has set.
func (o *output) drain(buf []byte) {
	conn, err := o.file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ) // others may go on writing for ever
		for err == nil && left > 0 {
			var n int
			n, err = unix.Read(int(fd), buf[:min(left, len(buf))])
			if n <= 0 {
				return
			}
			left -= n
			o.bytes(buf[:n])
		}
	})
}

func (o *output) bytes(p []byte) {
	if o.first != nil { // nothing of the first line goes anywhere else
		i := bytes.IndexByte(p, '\n') + 1
		if i == 0 {
			i = len(p)
		}
		o.split.write(p[:i])
		p = p[i:]
	}
	if len(p) == 0 {
		return
	}
	if o.raw != nil {
		_, _ = o.raw.Write(p) // its owner sees the error; the program must not suffer from it
	}
	if o.tail != nil || o.log != nil {
		o.split.write(p)
	}
}

func (o *output) line(line []byte, cut bool) {
	text := lineText(line, cut)
	if o.first != nil {
		o.first(text)
		o.first = nil
		return
	}
	if o.tail != nil {
		o.tail.add(text)
	}
	if o.log != nil {
		o.log.put(record{stream: o.stream, text: text})
	}
}

// record is one line on its way to the log.
type record struct {
	stream  string
	text    string
	dropped int // instead of a line: so many were lost
}

// logWriter writes records to a logger from a goroutine of its own. It is safe for concurrent use.
type logWriter struct {
	log   *slog.Logger
	queue chan record
	hurry chan struct{} // closed: wait for nothing any more
	done  chan struct{}

	mu      sync.Mutex
	dropped int
	closed  bool
}

func newLogWriter(log *slog.Logger) *logWriter {
	w := &logWriter{
		log:   log,
		queue: make(chan record, logQueue),
		hurry: make(chan struct{}),
		done:  make(chan struct{}),
	}
	go w.run()
	return w
}

func (w *logWriter) run() {
	defer close(w.done)
	for r := range w.queue {
		w.write(r)
	}
}

// close ends the writer once it has written what waits. Later records are lost.
func (w *logWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
}

// put queues one record. It waits up to logPatience for room, and then drops lines, without
// waiting, until the logger moves on; how many is said in the log.
func (w *logWriter) put(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.dropped > 0 {
		select {
		case w.queue <- record{stream: r.stream, dropped: w.dropped}:
			w.dropped = 0
		default:
			w.dropped++
			return
		}
	}
	select {
	case w.queue <- r:
		return
	default:
	}
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	select {
	case w.queue <- r:
	case <-patience.C:
		w.dropped++
	case <-w.hurry:
		w.dropped++
	}
}

func (w *logWriter) write(r record) {
	ctx := context.Background() // the line belongs to no request
	stream := slog.String("stream", r.stream)
	switch {
	case r.dropped > 0:
		w.log.LogAttrs(ctx, slog.LevelWarn, "lines of output dropped: the log is too slow",
			stream, slog.Int("lines", r.dropped))
	case r.stream == "stderr" && strings.HasPrefix(r.text, `{"@`):
		if level, msg, attrs, ok := parsePluginLog(r.text); ok {
			w.log.LogAttrs(ctx, level, msg, attrs...)
			return
		}
		fallthrough
	default:
		w.log.LogAttrs(ctx, slog.LevelInfo, r.text, stream)
	}
}

// streamWriter is an output for bytes that arrive by calls, as go-plugin's do.
type streamWriter struct {
	mu sync.Mutex
	o  *output
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.o.bytes(p)
	return len(p), nil
}

// parsePluginLog reads a line that a plugin's hclog wrote as JSON.
func parsePluginLog(line string) (level slog.Level, msg string, attrs []slog.Attr, ok bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		return 0, "", nil, false
	}
	name, hasLevel := fields["@level"].(string)
	msg, hasMessage := fields["@message"].(string)
	if !hasLevel || !hasMessage {
		return 0, "", nil, false
	}
	switch name {
	case "trace":
		level = hclogslog.LevelTrace
	case "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		level = slog.LevelInfo
	}
	for _, k := range sortedKeys(fields) {
		switch k {
		case "@level", "@message", "@timestamp":
		default:
			attrs = append(attrs, slog.Any(strings.TrimPrefix(k, "@"), fields[k]))
		}
	}
	return level, msg, attrs, true
}
