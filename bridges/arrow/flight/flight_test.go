package flight

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) { coretest.Main(m) }

const want = `listed: flags frame halves mirrored samples step
frame extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[640,3]]> in 1
mirrored extension<arrow.fixed_shape_tensor[value_type=uint8, shape=[640,3]]> in 1
samples float in 3
halves halffloat in 1
flags extension<arrow.bool8> in 1
step int64 in 1
table["weights"] extension<arrow.fixed_shape_tensor[value_type=double, shape=[200]]> in 1
no such ArrowKeyError
dates ArrowInvalid
two ArrowInvalid
`

// TestPyArrowReads lets PyArrow compare what it gets with what the program has. Afterwards all memory was given back.
func TestPyArrowReads(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_BRIDGES")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON_BRIDGES is not set; run make test")
	}
	session, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/program.py", Python: python})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	last, err := session.View(t.Context(), `table["weights"]`) // until all is there
	if err == nil {
		err = last.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, session)
	defer stop()
	out, err := exec.CommandContext(t.Context(), python, "testdata/client.py", "grpc://"+address, "testdata/program.py").CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	if string(out) != want {
		t.Errorf("PyArrow says\n%s\nwant\n%s", out, want)
	}
	r := readInGo(t, address, "samples")
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if rows != 3_000_000 || r.Err() != nil {
		t.Errorf("a client in Go reads %d rows, %v", rows, r.Err())
	}
}

// serve serves a session until stop is called, by when all memory was given back.
func serve(t *testing.T, session *hostplugin.Session) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrays := New(session)
	allocator := memory.NewCheckedAllocator(memory.DefaultAllocator)
	arrays.allocator = allocator
	server := flight.NewServerWithMiddleware(nil)
	server.InitListener(listener)
	server.RegisterFlightService(arrays)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	return listener.Addr().String(), func() {
		server.Shutdown()
		if err := <-served; err != nil {
			t.Error(err)
		}
		allocator.AssertSize(t, 0)
	}
}

// readInGo reads an array with a client in Go as it comes, which takes messages of up to 4 MiB.
func readInGo(t *testing.T, address, name string) *flight.Reader {
	t.Helper()
	client, err := flight.NewClientWithMiddleware(address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	stream, err := client.DoGet(t.Context(), &flight.Ticket{Ticket: []byte(name)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Release)
	return r
}

// TestTruncated has a program truncate a file while a client reads the array that lies in it: the client is told, and the server goes on.
func TestTruncated(t *testing.T) {
	t.Parallel()
	session, err := hostplugin.Run(t.Context(), hostplugin.Program{
		Script: "testdata/truncates.py", Args: []string{filepath.Join(t.TempDir(), "file")}, Python: os.Getenv("NDBRIDGE_TEST_PYTHON_BRIDGES"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	truncate, err := session.Func(t.Context(), "truncate")
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, session)
	defer stop()
	r := readInGo(t, address, "mapped")
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if _, err := truncate.Call(t.Context()); err != nil {
		t.Fatal(err)
	}
	for r.Next() { // what was on its way
	}
	if r.Err() == nil || !strings.Contains(r.Err().Error(), "truncated") {
		t.Errorf("the client is told %v", r.Err())
	}
}

// TestRowsOf sends as much at once of many rows that share their memory as of others.
func TestRowsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int
		want  int
	}{{[]int{3_000_000}, batch}, {[]int{1 << 42}, batch}, {[]int{1 << 42, 1 << 10}, batch >> 10}, {[]int{5, 2 * batch}, 1}, {[]int{0}, batch}} {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: c.shape, Strides: make([]int, len(c.shape))})
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsOf(l); got != c.want {
			t.Errorf("%v: %d rows, want %d", c.shape, got, c.want)
		}
	}
}
