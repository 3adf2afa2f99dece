package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// report is what build/bench/view.json holds. Durations are in nanoseconds.
type report struct {
	Machine     machine      `json:"machine"`
	Rows        []row        `json:"rows"`
	RoundTrip   quantiles    `json:"empty_round_trip"` // a call over the control path that does nothing
	Allocations perView      `json:"host_allocations_per_view"`
	Ratios      []ratio      `json:"ratios"`
	Handoff     []handoffRow `json:"handoff"`
	Heap        []heapRow    `json:"shared_heap"`
}

type machine struct {
	CPUs        int    `json:"cpus"`
	Model       string `json:"model"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
	Interpreter string `json:"interpreter"`
	Numpy       string `json:"numpy"`
}

// row is one way at one size.
type row struct {
	Bytes int       `json:"bytes"`
	Way   string    `json:"way"`
	View  quantiles `json:"view"` // until there is an array in the host's address space
	Read  quantiles `json:"read"` // until each element was read once
}

type perView struct {
	Count float64 `json:"count"`
	Bytes float64 `json:"bytes"`
}

// ratio compares two medians.
type ratio struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
}

func newReport(ctx context.Context, session *hostplugin.Session) (*report, error) {
	info, err := session.Info(ctx)
	if err != nil {
		return nil, err
	}
	r := &report{Machine: machine{
		CPUs: runtime.NumCPU(), Model: field("/proc/cpuinfo", "model name"), Kernel: kernel(),
		Go: runtime.Version(), Interpreter: info.Interpreter,
	}}
	for _, framework := range info.Frameworks {
		if framework.Name == "numpy" {
			r.Machine.Numpy = framework.Version
		}
	}
	return r, nil
}

func (r *report) add(bytes int, name string, samples []sample) {
	var view, read []time.Duration
	for _, s := range samples {
		view = append(view, s.View)
		if s.Read > 0 {
			read = append(read, s.Read)
		}
	}
	r.Rows = append(r.Rows, row{Bytes: bytes, Way: name, View: quantilesOf(view), Read: quantilesOf(read)})
}

// compare fills the ratios in: our largest against our smallest view, and each way against ours.
func (r *report) compare() {
	ours := map[int]row{}
	smallest, largest := r.Rows[0].Bytes, r.Rows[0].Bytes
	for _, row := range r.Rows {
		if row.Way == oursName {
			ours[row.Bytes] = row
			smallest, largest = min(smallest, row.Bytes), max(largest, row.Bytes)
		}
	}
	over := func(what string, a, b quantiles) {
		r.Ratios = append(r.Ratios, ratio{what, float64(a.P50) / float64(b.P50)})
	}
	over(fmt.Sprintf("ndbridge: a view of %s / of %s", bytesText(largest), bytesText(smallest)),
		ours[largest].View, ours[smallest].View)
	for _, row := range r.Rows {
		if row.Way != oursName {
			over(fmt.Sprintf("%s: %s / ndbridge", bytesText(row.Bytes), row.Way), row.View, ours[row.Bytes].View)
		}
	}
}

func (r *report) print(out io.Writer) {
	m := r.Machine
	fmt.Fprintf(out, "\n%d x %s, Linux %s, %s, %s, numpy %s\n", m.CPUs, m.Model, m.Kernel, m.Go, m.Interpreter, m.Numpy)
	fmt.Fprint(out, "Time until there is an array (view), and until each element was read once (read).\n\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "size\tway\tview p50\tview p99\tn\tread p50\tread p99\tn\t")
	last := 0
	for _, row := range r.Rows {
		label := ""
		if row.Bytes != last {
			label = bytesText(row.Bytes)
			last = row.Bytes
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t\n", label, row.Way, timeText(row.View.P50), timeText(row.View.P99),
			row.View.N, timeText(row.Read.P50), timeText(row.Read.P99), row.Read.N)
	}
	_ = table.Flush() // it writes where all else was written
	fmt.Fprintf(out, "\nempty round trip over the control path: p50 %s, p99 %s\n", timeText(r.RoundTrip.P50), timeText(r.RoundTrip.P99))
	fmt.Fprintf(out, "allocations on the host: %.0f, %.0f bytes a view\n\n", r.Allocations.Count, r.Allocations.Bytes)
	for _, ratio := range r.Ratios {
		fmt.Fprintf(out, "%10.2f  %s\n", ratio.Value, ratio.What)
	}
	printHandoff(out, r.Handoff)
	printHeap(out, r.Heap)
}

func bytesText(n int) string {
	switch {
	case n >= gibibyte:
		return fmt.Sprintf("%d GiB", n/gibibyte)
	case n >= mebibyte:
		return fmt.Sprintf("%d MiB", n/mebibyte)
	default:
		return fmt.Sprintf("%d KiB", n/kibibyte)
	}
}

// timeText gives three digits, in microseconds up to 10 ms.
func timeText(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.4g us", float64(d)/1e3)
	}
	return fmt.Sprintf("%.4g ms", float64(d)/1e6)
}

// field gives the first "name : value" of a file like /proc/cpuinfo.
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
