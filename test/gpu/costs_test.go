//go:build cuda

package gpu

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	costsTitle = "From the request for a view until it is there, 24 MiB, all in one run and in turns"
	waysTitle  = "The usual ways, in the same run"
	goalTitle  = "Against a CUDA tensor sent over torch.multiprocessing, medians"
	goal       = 30 // times faster
	rounds     = 20
	perRound   = 50
)

// TestCosts measures views of arrays on a GPU, with and without work that they must wait for, beside
// views of arrays in host memory, and beside the usual ways.
func TestCosts(t *testing.T) {
	var peers *peers
	if has(t, "torch") && has(t, "cudacore") {
		peers = startPeers(t)
	}
	names := []string{"driver", "pycuda", "torch", "cupy", "jax", "numba"}
	took := map[string]map[string][]time.Duration{}
	for _, name := range names {
		if has(t, name) {
			t.Run(name, func(t *testing.T) { took[name] = measureViews(t, name, peers) })
		}
	}
	if peers == nil {
		return
	}
	peers.write(t)
	for _, name := range names {
		for _, what := range []string{idle, pending} {
			if len(took[name][what]) > 0 {
				peers.compare(t, name, what, took[name][what])
			}
		}
	}
}

// firstKinds are the kinds of memory that are measured: what a framework has if nobody asks.
var firstKinds = map[string]string{
	"driver": "cuMemAlloc", "pycuda": "mem_alloc", "torch": "caching", "cupy": "pool", "jax": "device", "numba": "device",
}

// What is measured.
const (
	host    = "host memory (numpy)"
	idle    = "GPU, no work"
	pending = "GPU, behind work"
	wait    = "Stream.Wait"
)

// measureViews gives what each thing took, in ascending order.
func measureViews(t *testing.T, name string, peers *peers) map[string][]time.Duration {
	run := start(t, name, nil)
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); make_result()", firstKinds[name]))
	stream, err := cuda.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	took := map[string][]time.Duration{}
	take := func(what, array string) {
		for range perRound {
			start := time.Now()
			view, err := run.Session.View(t.Context(), array)
			if err != nil {
				t.Fatal(err)
			}
			viewed := time.Now()
			took[what] = append(took[what], viewed.Sub(start))
			if _, waits := coretest.Fence(t, view).(contract.CUDAWord); waits {
				if err := stream.Wait(view); err != nil {
					t.Fatal(err)
				}
				took[wait] = append(took[wait], time.Since(viewed))
			}
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(idle, "a") // what comes first costs more
	clear(took)
	for range rounds {
		take(host, "result")
		take(idle, "a")
		// Only so many fences may be outstanding, and those of the looks above may be.
		run.Remote.Exec(t, "synchronize(); work.milliseconds = 400; work.begin(framework.stream()); work.end(framework.stream())")
		take(pending, "a")
		if !harness.Eval[bool](t, run.Remote, "work.running()") {
			t.Fatal("the work was over before the last view")
		}
		run.Remote.Exec(t, "synchronize()")
		if peers != nil {
			peers.round(t)
		}
	}
	for _, what := range []string{host, idle, pending, wait} {
		if len(took[what]) == 0 {
			continue // behind work that the framework itself waits for
		}
		row := &report.Row{Table: costsTitle}
		row.Set("framework", name)
		row.Set("array", what)
		setQuantiles(row, took[what])
		write(t, row)
	}
	return took
}

// setQuantiles puts what was measured into a row, and sorts it.
func setQuantiles(row *report.Row, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) string {
		d := took[min(int(q*float64(len(took))), len(took)-1)]
		return fmt.Sprintf("%.1f us", float64(d)/1e3)
	}
	row.Set("p50", at(0.50))
	row.Set("p99", at(0.99))
	row.Set("n", len(took))
}

// peers are programs that measure the usual ways: peers.py, once for each.
type peers struct {
	programs map[string]peer
	took     map[string][]time.Duration
}

// peer is one of them.
type peer struct {
	in  io.Writer
	out *bufio.Reader
}

var ways = []string{"torch.multiprocessing", "StridedMemoryView"}

func startPeers(t *testing.T) *peers {
	t.Helper()
	p := &peers{programs: map[string]peer{}, took: map[string][]time.Duration{}}
	for _, way := range ways {
		p.programs[way] = startPeer(t, way)
	}
	p.round(t) // what comes first costs more
	clear(p.took)
	return p
}

func startPeer(t *testing.T, way string) peer {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), harness.Python(t), "testdata/programs/peers.py", way)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("peers.py %s: %v", way, err)
		}
	})
	return peer{in: in, out: bufio.NewReader(out)}
}

// round measures each way some times.
func (p *peers) round(t *testing.T) {
	t.Helper()
	for range perRound / 5 {
		for _, way := range ways {
			if _, err := fmt.Fprintln(p.programs[way].in, "once"); err != nil {
				t.Fatal(err)
			}
			line, err := p.programs[way].out.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", way, err)
			}
			p.took[way] = append(p.took[way], time.Duration(ns))
		}
	}
}

func (p *peers) write(t *testing.T) {
	t.Helper()
	for _, way := range ways {
		row := &report.Row{Table: waysTitle}
		row.Set("way", map[string]string{
			"torch.multiprocessing": "torch.multiprocessing, a CUDA tensor there and an answer back",
			"StridedMemoryView":     "cuda.core StridedMemoryView.from_any_interface, in the same process",
		}[way])
		setQuantiles(row, p.took[way])
		write(t, row)
	}
}

// compare says how much faster views were than torch.multiprocessing. That is no matter of passing.
func (p *peers) compare(t *testing.T, name, what string, took []time.Duration) {
	t.Helper()
	theirs := p.took["torch.multiprocessing"]
	times := float64(theirs[len(theirs)/2]) / float64(took[len(took)/2])
	row := &report.Row{Table: goalTitle}
	row.Set("framework", name)
	row.Set("array", what)
	row.Set("times faster", fmt.Sprintf("%.0f", times))
	row.Set("goal", fmt.Sprintf(">= %d", goal))
	row.Set("goal met", yes(times >= goal))
	write(t, row)
}
