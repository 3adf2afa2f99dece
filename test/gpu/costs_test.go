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

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const (
	costsTitle = "From the request for a view, or for a look again at a standing one, until it is there: 24 MiB, all in one run and in turns"
	waysTitle  = "The usual ways, in the same run"
	goalTitle  = "Views that are refreshed, against their goals and against a CUDA tensor sent over torch.multiprocessing"
	rounds     = 20
	perRound   = 50
	perPending = 22 // only so many fences may be outstanding, of views and of refreshes
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
		for _, what := range []string{idleAgain, pendingAgain, publishedAgain} {
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
	host           = "host memory (numpy), a view"
	hostAgain      = "host memory (numpy), refreshed"
	idle           = "GPU, no work, a view"
	idleAgain      = "GPU, no work, refreshed"
	pending        = "GPU, behind work, a view"
	pendingAgain   = "GPU, behind work, refreshed"
	publishedAgain = "GPU, published, refreshed"
	afterSilence   = "GPU, refreshed after a millisecond of silence"
	wait           = "Stream.Wait"
)

// goals are medians in microseconds of a view that is refreshed.
var goals = map[string]float64{"driver": 15, "pycuda": 15, "torch": 9, "cupy": 9, "jax": 4, "numba": 15}

// measureViews gives what each thing took, in ascending order.
func measureViews(t *testing.T, name string, peers *peers) map[string][]time.Duration {
	run := start(t, name, nil)
	run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); make_result(); ndbridge.publish('p', a)", firstKinds[name]))
	m := &measured{t: t, run: run, took: map[string][]time.Duration{}, standing: map[string]*core.View{}}
	var err error
	if m.stream, err = cuda.NewStream(0); err != nil {
		t.Fatal(err)
	}
	defer m.stream.Close()
	defer m.close()
	m.round() // what comes first costs more
	clear(m.took)
	for range rounds {
		m.round()
		if peers != nil {
			peers.round(t)
		}
	}
	for _, what := range []string{host, hostAgain, idle, idleAgain, pending, pendingAgain, publishedAgain, afterSilence, wait} {
		if len(m.took[what]) == 0 {
			continue // nothing had to be waited for
		}
		row := &report.Row{Table: costsTitle}
		row.Set("framework", name)
		row.Set("what", what)
		setQuantiles(row, m.took[what])
		write(t, row)
	}
	return m.took
}

// measured is one program, and what its arrays took.
type measured struct {
	t        *testing.T
	run      *harness.Run
	stream   *cuda.Stream
	took     map[string][]time.Duration
	standing map[string]*core.View // by the array's name
}

func (m *measured) close() {
	for _, v := range m.standing {
		v.Close()
	}
}

// round measures each thing some times.
func (m *measured) round() {
	m.views(host, "result", perRound)
	m.again(hostAgain, "result", perRound)
	m.views(idle, "a", perRound)
	m.again(idleAgain, "a", perRound)
	m.again(publishedAgain, "p", perRound)
	for range 5 {
		<-time.After(time.Millisecond)
		m.again(afterSilence, "a", 1)
	}
	// Only so many fences may be outstanding, and those of the looks above may be.
	m.run.Remote.Exec(m.t, "synchronize(); work.milliseconds = 200; work.begin(framework.stream()); work.end(framework.stream())")
	m.views(pending, "a", perPending)
	m.again(pendingAgain, "a", perPending)
	if !harness.Eval[bool](m.t, m.run.Remote, "work.running()") {
		m.t.Fatal("the work was over before the last view")
	}
	m.run.Remote.Exec(m.t, "synchronize()")
}

// views takes views, all but the first of which are measured: that comes after a silence.
func (m *measured) views(what, array string, times int) {
	for i := range times + 1 {
		start := time.Now()
		view, err := m.run.Session.View(m.t.Context(), array)
		if err != nil {
			m.t.Fatal(err)
		}
		if i > 0 {
			m.took[what] = append(m.took[what], time.Since(start))
		}
		if array != "result" {
			m.wait(view)
		}
		if err := view.Close(); err != nil {
			m.t.Fatal(err)
		}
	}
}

// How long again waits for the ends of leases, and how many looks come before those that are measured.
const (
	settling = 5 * time.Millisecond
	warm     = 5
)

// again refreshes the standing view, some times before it is measured, unless what comes first is what is measured.
func (m *measured) again(what, array string, times int) {
	source, err := m.run.Source(array)
	if err != nil {
		m.t.Fatal(err)
	}
	first := -warm
	if what == afterSilence {
		first = 0
	} else {
		<-time.After(settling)
	}
	for i := first; i < times; i++ {
		start := time.Now()
		view, _, err := source.Refresh(m.t.Context(), m.standing[array])
		if err != nil {
			m.t.Fatal(err)
		}
		if i >= 0 {
			m.took[what] = append(m.took[what], time.Since(start))
		}
		m.standing[array] = view
	}
}

// wait makes the stream wait for a view.
func (m *measured) wait(view *core.View) {
	if _, waits := coretest.Fence(m.t, view).(contract.CUDAWord); !waits {
		return
	}
	start := time.Now()
	if err := m.stream.Wait(view); err != nil {
		m.t.Fatal(err)
	}
	m.took[wait] = append(m.took[wait], time.Since(start))
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

// compare says how a refreshed view does against its goal and against torch.multiprocessing. That is no matter of
// passing.
func (p *peers) compare(t *testing.T, name, what string, took []time.Duration) {
	t.Helper()
	theirs := p.took["torch.multiprocessing"]
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	row := &report.Row{Table: goalTitle}
	row.Set("framework", name)
	row.Set("array", what)
	row.Set("times faster", fmt.Sprintf("%.0f", float64(theirs[len(theirs)/2])/float64(p50)))
	us := float64(p50) / 1e3
	row.Set("p50", fmt.Sprintf("%.1f us", us))
	row.Set("goal", fmt.Sprintf("%v us", goals[name]))
	row.Set("met", yes(us <= goals[name]))
	row.Set("p99 / p50 (goal: 10)", fmt.Sprintf("%.1f", float64(p99)/float64(p50)))
	write(t, row)
}
