package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
	"github.com/ndbridge/ndbridge/internal/wire/wiretest"
)

// program is a producer that stands in a program: it is configured and can be waited for.
type program struct {
	*coretest.Producer
	configured chan contract.Settings
	refuse     error
	ended      chan error
}

func newProgram(t *testing.T) *program {
	t.Helper()
	return &program{
		Producer:   coretest.NewProducer(t, coretest.Arrays()...),
		configured: make(chan contract.Settings, 8), ended: make(chan error, 1),
	}
}

func (p *program) Configure(s contract.Settings) error {
	p.configured <- s
	return p.refuse
}

func (p *program) Wait(ctx context.Context) error {
	select {
	case err := <-p.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestOpenConfiguresFirst(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	link := wiretest.Dial(t, p, wiretest.Options{Closed: true})
	for call, err := range map[string]error{
		"info":       second(link.Client.Info(t.Context())),
		"lease":      second(link.Client.Lease(t.Context(), "x", contract.Request{})),
		"descriptor": second(link.Client.Descriptor(t.Context(), 1, false)),
		"release":    link.Client.Release(t.Context(), 1),
		"arrays":     listError(t.Context(), link.Client),
	} {
		if !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s before Open = %v; want ErrProtocol", call, err)
		}
	}
	settings := contract.Settings{Program: "camera", Adapters: []contract.AdapterSettings{{Name: "numpy", Copy: contract.CopyNever}}}
	info, err := link.Client.Open(t.Context(), settings, wire.Wish{})
	if err != nil || info.PID != os.Getpid() || info.Plugin == "" {
		t.Fatalf("Open = %+v, %v", info, err)
	}
	if got := recv(t, p.configured); !reflect.DeepEqual(got, settings) {
		t.Errorf("configured with %+v, want %+v", got, settings)
	}
	if msg, files, err := link.Peer.Recv(); err != nil || len(files) > 0 || !wire.Opened(msg) {
		t.Errorf("after the answer to Open came %q, %v, %v", msg, files, err)
	}
	if _, err := link.Client.Open(t.Context(), settings, wire.Wish{}); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("second Open = %v; want ErrProtocol", err)
	}
}

func TestOpenRefused(t *testing.T) {
	t.Parallel()
	refusal := &core.Error{Op: "configure", Adapter: "numpy", Kind: core.ErrConfig, Quirk: "numpy.q", Err: errors.New("no such quirk")}
	p := newProgram(t)
	p.refuse = refusal
	link := wiretest.Dial(t, p, wiretest.Options{Closed: true})
	_, err := link.Client.Open(t.Context(), contract.Settings{}, wire.Wish{})
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrConfig) || e.Quirk != "numpy.q" || !e.Remote {
		t.Errorf("Open = %v", err)
	}
	if _, err := link.Client.Info(t.Context()); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("Info after it = %v; want ErrProtocol", err)
	}
	link = wiretest.Dial(t, newProgram(t), wiretest.Options{Closed: true})
	bad := contract.Settings{Adapters: []contract.AdapterSettings{{Copy: "no such"}}}
	if _, err := link.Client.Open(t.Context(), bad, wire.Wish{}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("Open with bad settings = %v; want ErrConfig", err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	t.Run("ends well", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t)
		p.ended <- nil
		if err := wiretest.Connect(t, p).Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("raises", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t)
		p.ended <- &core.PythonError{Type: "KeyError", Message: "'x'", Traceback: "T"}
		err := wiretest.Connect(t, p).Wait(t.Context())
		if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Type != "KeyError" || e.Traceback != "T" {
			t.Errorf("Wait = %v", err)
		}
	})
	t.Run("unsupported", func(t *testing.T) {
		t.Parallel()
		if err := wiretest.Connect(t, coretest.NewProducer(t)).Wait(t.Context()); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("Wait = %v; want ErrUnsupported", err)
		}
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := wiretest.Connect(t, newProgram(t)).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v; want DeadlineExceeded", err)
		}
	})
}

// TestDeathOfTheProgram kills the other side under calls that wait, and checks that these and all
// later ones say why, at once.
func TestDeathOfTheProgram(t *testing.T) {
	t.Parallel()
	cause := errors.New("killed by signal 9")
	for name, kill := range map[string]func(*wiretest.Link){
		"socket and connection": func(l *wiretest.Link) { l.Kill(t) },
		"only the side socket": func(l *wiretest.Link) { // a forked child holds the rest open
			if err := l.Peer.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		p := newProgram(t)
		link := wiretest.Dial(t, p, wiretest.Options{Client: wire.ClientOptions{
			Program:     "camera",
			Unavailable: func(context.Context) error { return cause },
		}})
		calls := map[string]func() error{
			"lease": func() error { return second(link.Client.Lease(t.Context(), "missing", contract.Request{})) },
			"wait":  func() error { return link.Client.Wait(t.Context()) },
		}
		results := make(chan error, len(calls))
		for _, call := range calls {
			go func() { results <- call() }()
		}
		time.Sleep(20 * time.Millisecond) // let them wait; too short only makes the test weaker
		start := time.Now()
		kill(link)
		for range calls {
			if err := recv(t, results); !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, cause) {
				t.Errorf("%s: a waiting call got %v", name, err)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		recv(t, link.Side.Done())
		if !errors.Is(link.Side.Err(), io.EOF) {
			t.Errorf("%s: Side.Err = %v; want EOF", name, link.Side.Err())
		}
		for call, err := range map[string]error{
			"info":       second(link.Client.Info(t.Context())),
			"lease":      second(link.Client.Lease(t.Context(), "samples", contract.Request{})),
			"descriptor": second(link.Client.Descriptor(t.Context(), 1, false)),
			"release":    link.Client.Release(t.Context(), 1),
			"arrays":     listError(t.Context(), link.Client),
		} {
			want := "camera"
			if call == "lease" {
				want = "camera/samples"
			}
			if !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s afterwards = %v", name, call, err)
			}
		}
	}
}

func TestCallsAfterClose(t *testing.T) {
	t.Parallel()
	client := wiretest.Connect(t, newProgram(t))
	waiting := make(chan error, 1)
	go func() { waiting <- client.Wait(t.Context()) }()
	if err := errors.Join(client.Close(), client.Close()); err != nil {
		t.Fatal(err)
	}
	if err := recv(t, waiting); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a waiting call got %v; want ErrClosed", err)
	}
	if _, err := client.Info(t.Context()); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Info = %v; want ErrClosed", err)
	}
}

// quick answers calls before the goroutines that would end them run.
type quick struct{ grpc.ClientConnInterface }

func (quick) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	return ctx.Err()
}

func TestQuickCallsAfterClose(t *testing.T) {
	t.Parallel()
	link := wiretest.Dial(t, newProgram(t), wiretest.Options{})
	for range 100 {
		client := wire.NewClient(quick{link.Conn}, link.Side, wire.ClientOptions{})
		if err := client.Release(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := client.Release(t.Context(), 1); !errors.Is(err, core.ErrClosed) {
			t.Fatalf("a call after Close = %v; want ErrClosed", err)
		}
	}
}

func TestStatusMessages(t *testing.T) {
	t.Parallel()
	host, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	peer, err := fdpass.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan wire.Status, 8)
	side := wire.NewSide(host, func(s wire.Status) { got <- s }, nil)
	want := []wire.Status{
		{Stage: wire.StagePython, Version: "3.11.7", Implementation: "cpython", Executable: "/usr/bin/python3"},
		{Stage: wire.StageLoaded},
	}
	for _, s := range want {
		msg, err := s.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := peer.Send(msg); err != nil {
			t.Fatal(err)
		}
		if received := recv(t, got); received != s || received.Err() != nil {
			t.Errorf("%+v arrived as %+v, %v", s, received, received.Err())
		}
	}
	for _, msg := range []string{`{"stage":`, `{}`, `{"stage":1}`, `{"stage":"error","kind":"new"}`} {
		if err := errors.Join(peer.Send([]byte("?unknown kind of message")), peer.Send([]byte(msg))); err != nil {
			t.Fatal(err)
		}
		if err := recv(t, got).Err(); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s gives %v; want ErrProtocol", msg, err)
		}
	}
	if err := side.Close(); err != nil {
		t.Fatal(err)
	}
	if err := side.Err(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Err after Close = %v; want os.ErrClosed", err)
	}
	if _, _, err := peer.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the program sees %v; want EOF", err)
	}
	if err := errors.Join(side.Close(), peer.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestManyDescriptorsLeakNothing takes descriptors from several goroutines, and gives some up.
//
//nolint:paralleltest // it counts the descriptors of the process
func TestManyDescriptorsLeakNothing(t *testing.T) {
	p := coretest.NewProducer(t, coretest.Arrays()...)
	client := wiretest.Connect(t, p)
	l, err := client.Lease(t.Context(), "picture", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	segment, ok := l.Handle.(contract.Segment)
	if !ok {
		t.Fatalf("handle %v", l.Handle)
	}
	take := func(ctx context.Context) error {
		f, err := client.Descriptor(ctx, segment.ID, false)
		if err != nil {
			return err
		}
		return f.Close()
	}
	if err := take(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := countFDs(t)
	results := make(chan error, 4)
	for g := range 4 {
		go func() {
			var errs []error
			for i := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if g == 0 { // one gives up at all stages of the call
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i)*3*time.Microsecond)
				}
				if err := take(ctx); g != 0 {
					errs = append(errs, err)
				}
				cancel()
			}
			results <- errors.Join(errs...)
		}()
	}
	for range 4 {
		if err := recv(t, results); err != nil {
			t.Error(err)
		}
	}
	eventually(t, func() error {
		if after := countFDs(t); len(after) != len(before) {
			return fmt.Errorf("descriptors before %v, after %v", before, after)
		}
		return nil
	})
}

func countFDs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(target, "/proc/") {
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}
