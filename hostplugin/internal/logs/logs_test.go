package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a slog.Handler that keeps records as "LEVEL message key=value ...", and can be held up.
type recorder struct {
	mu    sync.Mutex
	lines []string
	gate  chan struct{} // nil: open
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }

func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	if r.gate != nil {
		<-r.gate
	}
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maxLine)
	for name, test := range map[string]struct{ in, want string }{
		"lines":         {"a\nbb\n", "a|bb|"},
		"no end":        {"a\nbb", "a|bb|"},
		"empty lines":   {"\n\na\n", "||a|"},
		"nothing":       {"", ""},
		"exactly long":  {long + "\nb\n", long + "|b|"},
		"too long":      {long + "x\nb\n", long + cutMark + "|b|"},
		"far too long":  {strings.Repeat(long, 20) + "\nb\n", long + cutMark + "|b|"},
		"long, no end":  {long + "x", long + cutMark + "|"},
		"carriage":      {"a\r\nb\r\n", "a|b|"},
		"progress":      {" 10%\r 20%\r100%\n", "100%|"},
		"progress end":  {" 10%\r100%\r\n", "100%|"},
		"not UTF-8":     {"a\xffb\n", "a\uFFFDb|"},
		"cut in a rune": {long[1:] + "é\n", long[1:] + "\uFFFD" + cutMark + "|"},
	} {
		for _, chunk := range []int{1, 7, 4096, 1 << 20} {
			if chunk == 1 && len(test.in) > 3*maxLine {
				continue // slow, and no different
			}
			var got strings.Builder
			s := lineSplitter{emit: func(line []byte, cut bool) { got.WriteString(lineText(line, cut) + "|") }}
			for in := []byte(test.in); len(in) > 0; in = in[min(chunk, len(in)):] {
				s.write(in[:min(chunk, len(in))])
			}
			s.finish()
			if got.String() != test.want {
				t.Errorf("%s in pieces of %d: %.80q, want %.80q", name, chunk, got.String(), test.want)
			}
			if cap(s.partial) > 2*maxLine {
				t.Errorf("%s: a buffer of %d bytes", name, cap(s.partial))
			}
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff"), 3)
	f.Fuzz(func(t *testing.T, in []byte, chunk int) {
		chunk = 1 + max(0, chunk)%100
		lines := 0
		s := lineSplitter{emit: func(line []byte, cut bool) {
			if text := lineText(line, cut); !utf8.ValidString(text) || strings.Contains(text, "\n") {
				t.Errorf("line %q", text)
			}
			lines++
		}}
		for rest := in; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
			s.write(rest[:min(chunk, len(rest))])
		}
		s.finish()
		want := bytes.Count(in, []byte("\n"))
		if len(in) > 0 && in[len(in)-1] != '\n' {
			want++
		}
		if lines != want {
			t.Errorf("%d lines of %q, want %d", lines, in, want)
		}
	})
}

// TestTailHasNoStacks: of a Go program that fails, the reason is kept, which it prints first.
func TestTailHasNoStacks(t *testing.T) {
	t.Parallel()
	var tail Tail
	const crash = "(x)\n\npanic: no\n\ngoroutine 1 [running]:\nmain.f(0x1, 0x2)\n\tmain.go:1 +0x1\n\nruntime stack:\nruntime.g()\n" +
		"goroutine 2 [select]:\nmain.f()\n\tmain.go:1\ncreated by main.f in goroutine 1\n\tmain.go:7\nlater\n(y)"
	for line := range strings.SplitSeq(crash, "\n") {
		tail.add(line)
	}
	if got, want := tail.Text(), "(x)\n\npanic: no\n\nlater\n(y)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var tail Tail
	if tail.Text() != "" {
		t.Errorf("an empty tail is %q", tail.Text())
	}
	for i := range 1000 {
		tail.add(fmt.Sprint("line ", i))
	}
	if got := tail.Text(); !strings.HasPrefix(got, "line 980\n") || !strings.HasSuffix(got, "\nline 999") {
		t.Errorf("tail = %q", got)
	}
	tail.add("")
	if got := tail.Text(); !strings.HasSuffix(got, "line 999") {
		t.Errorf("tail = %q", got)
	}
	tail.add(strings.Repeat("é", tailBytes))
	if got := tail.Text(); len(got) > tailBytes || !utf8.ValidString(got) || !strings.HasPrefix(got, "é") {
		t.Errorf("tail of %d bytes", len(got))
	}
	for range 3 {
		tail.add(strings.Repeat("x", tailBytes/2))
	}
	if got := tail.Text(); len(got) != tailBytes+1 {
		t.Errorf("tail of %d bytes", len(got))
	}
}

func TestFirstLineIsApart(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 5, 1000} {
		var raw bytes.Buffer
		var first []string
		tail := new(Tail)
		o := NewOutput(Sink{Raw: &raw, Tail: tail}, func(line string) { first = append(first, line) })
		for in := []byte("hand|shake\nout\nput"); len(in) > 0; in = in[min(chunk, len(in)):] {
			if n, err := o.Write(in[:min(chunk, len(in))]); err != nil || n != min(chunk, len(in)) {
				t.Errorf("Write = %d, %v", n, err)
			}
		}
		o.finish()
		if fmt.Sprint(first) != "[hand|shake]" || raw.String() != "out\nput" || tail.Text() != "out\nput" {
			t.Errorf("pieces of %d: first %q, raw %q, tail %q", chunk, first, raw.String(), tail.Text())
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	var r recorder
	w := NewWriter(slog.New(&r))
	out := NewOutput(Sink{Stream: "stdout", Log: w}, nil)
	errs := NewOutput(Sink{Stream: "stderr", Log: w}, nil)
	for _, text := range []string{
		"plain\n",
		`{"@level":"warn","@message":"careful","@module":"kit","@timestamp":"2026-01-01","n":3}` + "\n",
		`{"@level":"trace","@message":"detail"}` + "\n",
		`{"@level":5,"@message":"odd"}` + "\n",
		`{"@level":"error"}` + "\n",
		`{"@broken` + "\n",
	} {
		if _, err := errs.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	if _, err := out.Write([]byte(`{"@level":"warn","@message":"the program's own"}` + "\n")); err != nil {
		t.Error(err)
	}
	w.Close(10 * time.Second)
	w.Close(10 * time.Second)
	w.put(record{text: "too late"})
	want := strings.Join([]string{
		"INFO plain stream=stderr",
		"WARN careful module=kit n=3",
		LevelTrace.String() + " detail",
		`INFO {"@level":5,"@message":"odd"} stream=stderr`,
		`INFO {"@level":"error"} stream=stderr`,
		`INFO {"@broken stream=stderr`,
		`INFO {"@level":"warn","@message":"the program's own"} stream=stdout`,
	}, "\n")
	if r.text() != want {
		t.Errorf("records:\n%s\nwant:\n%s", r.text(), want)
	}
}

// TestStuckLogger: a logger that stands still costs lines, which are counted, but blocks for a bounded
// time only.
func TestStuckLogger(t *testing.T) {
	t.Parallel()
	r := recorder{gate: make(chan struct{})}
	w := NewWriter(slog.New(&r))
	began := time.Now()
	const extra = 1000
	for i := range queueLength + 1 + extra { // one is in the logger's hands, at most
		w.put(record{stream: "stdout", text: strconv.Itoa(i)})
	}
	if d := time.Since(began); d < patience || d > patience+5*time.Second {
		t.Errorf("lines took %v", d)
	}
	close(r.gate)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(r.text(), "lines of output dropped") && time.Now().Before(deadline) {
		w.put(record{stream: "stdout", text: "again"})
		time.Sleep(time.Millisecond)
	}
	w.Close(10 * time.Second)
	text := r.text()
	var dropped, kept int
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "WARN lines of output dropped: the log is too slow lines=%d", &n); err == nil {
			dropped += n
		} else if !strings.Contains(line, "again") {
			kept++
		}
	}
	if dropped < extra || kept+dropped < queueLength+1+extra || !strings.HasSuffix(text, "again stream=stdout") {
		t.Errorf("%d lines kept, %d dropped; end: %q", kept, dropped, text[max(0, len(text)-100):])
	}
}

func TestHurryAndCloseDoNotWait(t *testing.T) {
	t.Parallel()
	r := recorder{gate: make(chan struct{})}
	w := NewWriter(slog.New(&r))
	w.Hurry()
	began := time.Now()
	for range 10 * queueLength {
		w.put(record{text: "x"})
	}
	w.Close(10 * time.Millisecond)
	if d := time.Since(began); d > patience {
		t.Errorf("took %v", d)
	}
	close(r.gate)
	<-w.done
	if text := r.text(); strings.Count(text, "x stream") < queueLength {
		t.Errorf("%d lines kept", strings.Count(text, "x stream"))
	}
}

// TestPipeStops: the end of a read does not depend on who else holds the writing end.
func TestPipeStops(t *testing.T) {
	t.Parallel()
	var raw bytes.Buffer
	p, w, err := NewPipe(NewOutput(Sink{Raw: &raw}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	text := strings.Repeat("x", 50<<10) // less than a pipe holds
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	p.Stop() // before the read, so that all of it must come from the drain
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Read()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Read goes on")
	}
	if raw.String() != text {
		t.Errorf("%d bytes of %d", raw.Len(), len(text))
	}
	if _, err := w.WriteString("y"); err == nil {
		t.Error("the reading end is open")
	}
}

func TestPipeEndsWithTheWriter(t *testing.T) {
	t.Parallel()
	var tail Tail
	p, w, err := NewPipe(NewOutput(Sink{Tail: &tail}, nil))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer w.Close()
		_, _ = io.WriteString(w, strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000)+"last")
	}()
	p.Read()
	if !strings.HasSuffix(tail.Text(), "xxx\nlast") {
		t.Errorf("tail = %q", tail.Text())
	}
}

// TestHCLogHandler sends records through slog to hclog.
func TestHCLogHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug, DisableTime: true})
	log := slog.New(HCLogHandler(h))
	ctx := t.Context()
	log.Info("hello", "program", "camera", slog.Group("g", "a", 1, slog.Group("", "b", 2)))
	log.With("x", 1).WithGroup("h").With("y", 2).WithGroup("").Warn("careful", "z", 3)
	log.Error("bad", slog.Attr{})
	log.Debug("detail")
	log.Log(ctx, LevelTrace, "never")
	want := `[INFO]  hello: program=camera g.a=1 g.b=2
[WARN]  careful: h.y=2 x=1 h.z=3
[ERROR] bad
[DEBUG] detail
`
	if out.String() != want {
		t.Errorf("hclog has\n%swant\n%s", out.String(), want)
	}
	for level, enabled := range map[slog.Level]bool{
		LevelTrace: false, slog.LevelDebug: true, slog.LevelInfo: true, slog.LevelWarn: true, slog.LevelError: true,
	} {
		if got := log.Enabled(ctx, level); got != enabled {
			t.Errorf("Enabled(%v) = %v", level, got)
		}
	}
}

func TestGoPluginIsDemoted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	ForGoPlugin(log).With("a", 1).Error("plugin process exited")
	if out.Len() > 0 {
		t.Errorf("an error of go-plugin's is shown: %s", out.String())
	}
	log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ForGoPlugin(log).With("a", 1).Named("stdio").Error("plugin process exited")
	if !strings.Contains(out.String(), `level=DEBUG msg="plugin process exited"`) {
		t.Errorf("debug has %s", out.String())
	}
}
