package logs

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// queueLength is how many lines may wait for the logger.
	queueLength = 128
	// patience is how long a program waits for a logger that stands still before lines are dropped.
	// A logger may be slow, but it must not stop a program for good.
	patience = time.Second
)

// record is one line on its way to the log.
type record struct {
	stream  string
	text    string
	dropped int // instead of a line: so many were lost
}

// Writer writes lines to a logger from a goroutine of its own. It is safe for concurrent use.
type Writer struct {
	log   *slog.Logger
	queue chan record
	done  chan struct{}

	hurry    chan struct{} // closed: nobody waits for the logger any more
	hurrying sync.Once

	mu      sync.Mutex
	dropped int
	closed  bool
}

// NewWriter starts a writer. It must be closed.
func NewWriter(log *slog.Logger) *Writer {
	w := &Writer{
		log:   log,
		queue: make(chan record, queueLength),
		hurry: make(chan struct{}),
		done:  make(chan struct{}),
	}
	go w.run()
	return w
}

func (w *Writer) run() {
	defer close(w.done)
	for r := range w.queue {
		w.write(r)
	}
}

// Hurry makes lines that the logger does not take at once be dropped from now on: the program has
// ended, and its end must not wait for a logger.
func (w *Writer) Hurry() { w.hurrying.Do(func() { close(w.hurry) }) }

// Close ends the writer. It waits for the logger to take what is queued, but not longer than the
// given time; a logger that stands still for longer keeps the writer's goroutine. It is idempotent.
func (w *Writer) Close(wait time.Duration) {
	w.Hurry() // frees whoever holds the lock in put
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		if w.dropped > 0 {
			select {
			case w.queue <- record{dropped: w.dropped}:
			default: // a logger that stands still will not read it
			}
		}
		close(w.queue)
	}
	w.mu.Unlock()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-w.done:
	case <-timeout.C:
	}
}

// put queues one record. It waits a while for room, and then drops lines, without waiting, until
// the logger moves on; how many is said in the log.
func (w *Writer) put(r record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.dropped > 0 {
		select {
		case w.queue <- record{dropped: w.dropped}:
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
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case w.queue <- r:
	case <-timeout.C:
		w.dropped++
	case <-w.hurry:
		w.dropped++
	}
}

func (w *Writer) write(r record) {
	ctx := context.Background() // a line belongs to no request
	if r.dropped > 0 {
		w.log.LogAttrs(ctx, slog.LevelWarn, "lines of output dropped: the log is too slow",
			slog.Int("lines", r.dropped))
		return
	}
	if level, msg, attrs, ok := parsePluginLog(r); ok {
		w.log.LogAttrs(ctx, level, msg, attrs...)
		return
	}
	w.log.LogAttrs(ctx, slog.LevelInfo, r.text, slog.String("stream", r.stream))
}

// parsePluginLog reads a line that a plugin's own hclog wrote as JSON, as go-plugin's hosts do.
func parsePluginLog(r record) (level slog.Level, msg string, attrs []slog.Attr, ok bool) {
	if r.stream != "stderr" || !strings.HasPrefix(r.text, `{"@`) {
		return 0, "", nil, false
	}
	var fields map[string]any
	if json.Unmarshal([]byte(r.text), &fields) != nil {
		return 0, "", nil, false
	}
	name, hasLevel := fields["@level"].(string)
	msg, hasMessage := fields["@message"].(string)
	if !hasLevel || !hasMessage {
		return 0, "", nil, false
	}
	switch name {
	case "trace":
		level = LevelTrace
	case "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		level = slog.LevelInfo
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		switch k {
		case "@level", "@message", "@timestamp":
		default:
			attrs = append(attrs, slog.Any(strings.TrimPrefix(k, "@"), fields[k]))
		}
	}
	return level, msg, attrs, true
}
