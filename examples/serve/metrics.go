package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
)

// metrics count requests. The zero value is ready; all methods are safe for concurrent use.
type metrics struct {
	mu      sync.Mutex
	answers map[int]uint64 // by status
	within  [15]uint64     // answers that took at most bound(i)
	took    time.Duration  // in all
}

// bound is the upper end of a bucket: from 1 ms to 16 s.
func bound(bucket int) time.Duration { return time.Millisecond << bucket }

// note counts a request that was answered.
func (m *metrics) note(status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = make(map[int]uint64)
	}
	m.answers[status]++
	m.took += took
	for i := range m.within {
		if took <= bound(i) {
			m.within[i]++
		}
	}
}

// write gives the numbers in the text form of Prometheus: of requests, also those that are under way, and of their batches.
func (m *metrics) write(w http.ResponseWriter, running int, batches hostplugin.BatchStats) {
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	number := func(name, kind, help string, n uint64) {
		family(name, kind, help)
		fmt.Fprintf(&b, "%s %d\n", name, n)
	}
	summary := func(name, help string, sum float64, count uint64) {
		family(name, "summary", help)
		fmt.Fprintf(&b, "%s_sum %g\n%s_count %d\n", name, sum, name, count)
	}
	m.mu.Lock()
	var all uint64
	family("classify_requests_total", "counter", "Requests to classify, by the status of the answer.")
	for _, status := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(&b, "classify_requests_total{code=\"%d\"} %d\n", status, m.answers[status])
		all += m.answers[status]
	}
	family("classify_duration_seconds", "histogram", "Time that requests to classify took.")
	for i, n := range m.within {
		fmt.Fprintf(&b, "classify_duration_seconds_bucket{le=\"%g\"} %d\n", bound(i).Seconds(), n)
	}
	fmt.Fprintf(&b, "classify_duration_seconds_bucket{le=\"+Inf\"} %d\n", all)
	fmt.Fprintf(&b, "classify_duration_seconds_sum %g\nclassify_duration_seconds_count %d\n", m.took.Seconds(), all)
	m.mu.Unlock()
	number("classify_running", "gauge", "Requests to classify that are under way.", uint64(running))
	number("classify_waiting", "gauge", "Images that wait for a row of a batch.", uint64(batches.Waiting))
	summary("classify_queue_seconds", "Time that images waited for the model to begin.", batches.Queued.Seconds(), batches.Calls)
	summary("classify_batch_images", "Images in batches.", float64(batches.Calls), batches.Batches)
	summary("classify_batch_seconds", "Time that the model took for batches.", batches.Ran.Seconds(), batches.Batches)
	number("classify_batches_failed_total", "counter", "Batches that the model has not answered.", batches.Failed)
	number("classify_gave_up_total", "counter", "Images whose request ended before the model answered.", batches.GaveUp)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, b.String()) // a client that has gone does not care
}
