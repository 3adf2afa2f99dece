package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { coretest.Main(m) }

func python(t *testing.T) string {
	t.Helper()
	p := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if p == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	return p
}

// connect makes a client of a server at a Unix socket.
func connect(t *testing.T, socket string) arrowflight.Client {
	t.Helper()
	client, err := arrowflight.NewClientWithMiddleware("unix:"+socket, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// names asks a server at a Unix socket what it has.
func names(t *testing.T, socket string) (all []string) {
	t.Helper()
	client := connect(t, socket)
	defer client.Close()
	stream, err := client.ListFlights(t.Context(), &arrowflight.Criteria{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.GetFlightDescriptor().GetPath()[0])
	}
}

// start runs the command until it is cancelled or ends.
func start(t *testing.T, args ...string) (cancel func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, in, io.Discard, args); in.Close() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving on grpc+unix://") {
		t.Fatalf("it says %q, %v, and ends with %v", line, err, <-done)
	}
	return cancel, done
}

// serve runs the command until the function that it returns is called, which gives its error.
func serve(t *testing.T, args ...string) (stop func() error) {
	t.Helper()
	cancel, ended := start(t, args...)
	return func() error { cancel(); return <-ended }
}

func TestScript(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "flight")
	stop := serve(t, "-python", python(t), "-script", "testdata/program.py", "-listen", "unix:"+socket, "argument")
	got := ""
	for deadline := time.Now().Add(time.Minute); got != "argument frame" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		got = strings.Join(names(t, socket), " ") // once the script has come so far
	}
	if got != "argument frame" {
		t.Errorf("it has %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// firstBatch begins to read an array, and reads no more of it than the first batch. It gives nil while there is no array of that name.
func firstBatch(t *testing.T, client arrowflight.Client, name string) arrow.RecordBatch {
	t.Helper()
	stream, err := client.DoGet(t.Context(), &arrowflight.Ticket{Ticket: []byte(name)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := arrowflight.NewRecordReader(stream)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	if !r.Next() {
		t.Fatal(r.Err())
	}
	return r.RecordBatch()
}

// TestClientThatDoesNotRead ends the command while a client reads no further: it is cancelled, or its program killed.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"cancelled", "killed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "flight")
			cancel, ended := start(t, "-python", python(t), "-script", "testdata/large.py", "-listen", "unix:"+socket)
			defer cancel()
			client := connect(t, socket)
			defer client.Close()
			pid := firstBatch(t, client, "pid")
			for deadline := time.Now().Add(time.Minute); pid == nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				pid = firstBatch(t, client, "pid") // once the script has come so far
			}
			number, ok := pid.Column(0).(*array.Int64)
			if !ok {
				t.Fatal(pid)
			}
			firstBatch(t, client, "large")
			if way == "cancelled" {
				cancel()
			} else if err := syscall.Kill(int(number.Value(0)), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if (err == nil) != (way == "cancelled") {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it goes on")
			}
		})
	}
}

// TestAttach serves a program that runs already, and which goes on.
func TestAttach(t *testing.T) {
	t.Parallel()
	name := "flight-" + filepath.Base(t.TempDir()) + time.Now().Format("150405.000000")
	program := exec.CommandContext(t.Context(), python(t), "testdata/listen.py", name)
	program.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(os.Getenv("NDBRIDGE_LIB"), "python"))
	program.Stderr = os.Stderr
	life, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(says).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		socket := filepath.Join(t.TempDir(), "flight")
		stop := serve(t, "-attach", name, "-listen", "unix:"+socket)
		if got := strings.Join(names(t, socket), " "); got != "frame" {
			t.Errorf("it has %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	life.Close()
	if err := program.Wait(); err != nil {
		t.Errorf("the program: %v", err)
	}
}

// TestProgramThatEnds ends the command, too.
func TestProgramThatEnds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "flight")
	if err := run(t.Context(), io.Discard, io.Discard, []string{"-python", python(t), "-script", "testdata/ends.py", "-listen", "unix:" + socket}); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-script", "a.py", "-attach", "b"}} {
		if err := run(t.Context(), io.Discard, io.Discard, args); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := run(t.Context(), io.Discard, io.Discard, []string{"-attach", "nobody-of-this-name"}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
