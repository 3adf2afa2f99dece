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
)

// metrics count requests. The zero value is ready; all methods are safe for concurrent use.
type metrics struct {
	mu      sync.Mutex
	answers map[int]uint64 // by status
	took    time.Duration  // in all
}

// note counts a request that was answered.
func (m *metrics) note(status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = make(map[int]uint64)
	}
	m.answers[status]++
	m.took += took
}

// write gives the numbers, also of requests that are under way, in the text form of Prometheus.
func (m *metrics) write(w http.ResponseWriter, running int) {
	var b strings.Builder
	m.mu.Lock()
	var all uint64
	b.WriteString("# HELP classify_requests_total Requests to classify, by the status of the answer.\n# TYPE classify_requests_total counter\n")
	for _, status := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(&b, "classify_requests_total{code=\"%d\"} %d\n", status, m.answers[status])
		all += m.answers[status]
	}
	b.WriteString("# HELP classify_duration_seconds Time that requests to classify took.\n# TYPE classify_duration_seconds summary\n")
	fmt.Fprintf(&b, "classify_duration_seconds_sum %g\nclassify_duration_seconds_count %d\n", m.took.Seconds(), all)
	m.mu.Unlock()
	fmt.Fprintf(&b, "# HELP classify_running Requests to classify that are under way.\n# TYPE classify_running gauge\nclassify_running %d\n", running)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, b.String()) // a client that has gone does not care
}
