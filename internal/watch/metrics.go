package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metric is one family of Prometheus' text format.
type metric struct {
	name, kind, help string
	value            func(s *Series) (x float64, ok bool) // of one array
}

// last gives a metric of the last look.
func last(name, help string, value func(p *Point) float64) metric {
	return metric{"ndbridge_array_" + name, "gauge", help, func(s *Series) (float64, bool) {
		if len(s.History) == 0 {
			return 0, false
		}
		return value(&s.History[len(s.History)-1]), true
	}}
}

// numbers is the metric of numbers of Python's own, which have no other but their alarms.
func numbers(s *Series) (float64, bool) {
	if s.Last == nil || s.Error != "" {
		return 0, false
	}
	return s.Last.Mean, true
}

func metrics() []metric {
	seen := func(name, kind, help string, value func(s *Series) float64) metric {
		return metric{"ndbridge_array_" + name, kind, help, func(s *Series) (float64, bool) {
			if s.Last == nil {
				return 0, false
			}
			return value(s), true
		}}
	}
	return []metric{
		{"ndbridge_array_up", "gauge", "Whether the last look at the array went well.", func(s *Series) (float64, bool) {
			return truth(s.Error == "" && s.Last != nil), true
		}},
		seen("elements", "gauge", "Elements of the array.", func(s *Series) float64 { return float64(s.Last.Len) }),
		seen("seen_elements", "gauge", "Elements that the last look has read.", func(s *Series) float64 { return float64(s.Last.Seen) }),
		seen("looks_total", "counter", "Looks at the array.", func(s *Series) float64 { return float64(s.Looks) }),
		seen("changed_timestamp_seconds", "gauge", "When the array was last seen to have changed.",
			func(s *Series) float64 { return seconds(s.Changed) }),
		last("look_timestamp_seconds", "When the array was last looked at.", func(p *Point) float64 { return seconds(p.Time) }),
		last("version", "Version of the array; 0 if it is not published.", func(p *Point) float64 { return float64(p.Version) }),
		last("nan", "Elements that are NaN, of those seen.", func(p *Point) float64 { return float64(p.NaN) }),
		last("inf", "Elements that are infinite, of those seen.", func(p *Point) float64 { return float64(p.Inf) }),
		last("zero_ratio", "Share of the elements that are zero.", func(p *Point) float64 { return float64(p.Zero) }),
		last("min", "Least finite element.", func(p *Point) float64 { return float64(p.Min) }),
		last("max", "Greatest finite element.", func(p *Point) float64 { return float64(p.Max) }),
		last("mean", "Mean of the finite elements.", func(p *Point) float64 { return float64(p.Mean) }),
		last("std", "Standard deviation of the finite elements.", func(p *Point) float64 { return float64(p.Std) }),
		last("norm", "L2 norm of the finite elements.", func(p *Point) float64 { return float64(p.Norm) }),
		{"ndbridge_array_step", "gauge", "The program's step at the last look.", func(s *Series) (float64, bool) {
			if len(s.History) == 0 || s.History[len(s.History)-1].Step == nil {
				return 0, false
			}
			return float64(*s.History[len(s.History)-1].Step), true
		}},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// WriteMetrics writes a state in Prometheus' text format, version 0.0.4.
func WriteMetrics(w io.Writer, state State) error {
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) } // NaN, +Inf and -Inf, as the format has them
	all := func(m metric, of string, numbers bool) {
		family(m.name, m.kind, m.help)
		for i := range state.Arrays {
			a := &state.Arrays[i]
			if x, ok := m.value(a); ok && a.Number == numbers {
				fmt.Fprintf(&b, "%s{%s=%s} %s\n", m.name, of, label(a.Name), number(x))
			}
		}
	}
	for _, m := range metrics() {
		all(m, "array", false)
	}
	all(metric{"ndbridge_number", "gauge", "Value of a number of Python's own.", numbers}, "name", true)
	family("ndbridge_array_alarm", "gauge", "1 for each alarm whose condition is met.")
	for _, s := range state.Arrays {
		for _, alarm := range s.Raised {
			fmt.Fprintf(&b, "ndbridge_array_alarm{array=%s,alarm=%s} 1\n", label(s.Name), label(alarm))
		}
	}
	for _, m := range []struct {
		name, help string
		value      float64
	}{
		{"looking_seconds_total", "Time that looks have taken.", state.Usage.Looking.Seconds()},
		{"read_bytes_total", "Bytes of arrays that were read.", float64(state.Usage.Bytes)},
		{"rounds_total", "Rounds of looks at all arrays.", float64(state.Usage.Rounds)},
	} {
		family("ndbridge_watch_"+m.name, "counter", m.help)
		fmt.Fprintf(&b, "ndbridge_watch_%s %s\n", m.name, number(m.value))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// label writes the value of a label.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "�")) + `"`
}

// Handler serves the state of a sampler: /metrics for Prometheus, and /stats.json.
func (s *Sampler) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = WriteMetrics(w, s.State()) // whoever asked is gone
	})
	mux.HandleFunc("GET /stats.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.State()) // whoever asked is gone
	})
	return mux
}
