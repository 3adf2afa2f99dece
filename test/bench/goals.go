package main

import (
	"fmt"
	"time"

	"github.com/ndbridge/ndbridge/internal/bench"
)

// goal is a figure that is held to a goal. Where it is a ratio, both terms are of the same run.
type goal struct {
	Figure   string `json:"figure"`
	Goal     string `json:"goal"`
	Measured string `json:"measured"`
	Met      bool   `json:"goal_met"`
}

// judge collects goals.
type judge struct {
	rows  bench.Rows
	goals []goal
}

func (j *judge) add(figure, want, measured string, met bool) {
	j.goals = append(j.goals, goal{figure, want, measured, met})
}

func (j *judge) row(way, framework string, size int) bench.Row {
	row, _ := j.rows.Find(bench.Key{Way: way, Framework: framework, Bytes: size})
	return row
}

// within holds a duration to a limit.
func (j *judge) within(figure string, got, limit time.Duration) {
	j.add(figure, "<= "+bench.TimeText(limit), bench.TimeText(got), got > 0 && got <= limit)
}

// atMost holds a duration to a multiple of another, which has a name.
func (j *judge) atMost(figure string, got time.Duration, limit float64, name string, base time.Duration) {
	j.times(figure, ratioOf(got, base), limit, name, bench.TimeText(got)+" / "+bench.TimeText(base))
}

// times holds a ratio, of terms as they are shown, to a limit.
func (j *judge) times(figure string, ratio, limit float64, name, terms string) {
	j.add(figure, fmt.Sprintf("<= %gx %s", limit, name), fmt.Sprintf("%.2fx (%s)", ratio, terms), ratio > 0 && ratio <= limit)
}

// beside holds a row to a multiple of another, which has a name, round by round.
func (j *judge) beside(figure string, got bench.Row, limit float64, name string, base bench.Row) {
	j.times(figure, got.Over(base), limit, name, "of all rounds: "+bench.TimeText(got.P50)+" / "+bench.TimeText(base.P50))
}

// faster holds that a peer takes so many times as long.
func (j *judge) faster(figure string, got, peer time.Duration, least float64) {
	ratio := ratioOf(peer, got)
	j.add(figure, fmt.Sprintf(">= %gx faster", least),
		fmt.Sprintf("%.0fx (%s / %s)", ratio, bench.TimeText(peer), bench.TimeText(got)), ratio >= least)
}

// ratioOf is 0 if one of them was not measured.
func ratioOf(a, b time.Duration) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// goals holds a report to what the hand-off is to achieve.
func goals(r *report, plan *bench.Plan) []goal {
	j := &judge{rows: r.Rows}
	small, usual, large := plan.Sizes[0], plan.Shared(), plan.Sizes[len(plan.Sizes)-1]
	numpy, torch, jax := j.row(ours, "numpy", usual), j.row(ours, "torch", usual), j.row(ours, "jax", usual)
	size := bench.SizeText(usual)
	j.beside("numpy view, "+size+", spinning, p50, in the median round", numpy, 3, bareRing, j.row(bareRing, "", 0))
	j.within("numpy view, "+size+", spinning, p50", numpy.P50, 2*time.Microsecond)
	j.within("torch view, "+size+", spinning, p50", torch.P50, 3*time.Microsecond)
	j.atMost("jax view, "+size+", spinning, p50", jax.P50, 1.5, "its own __dlpack__", j.row(bench.OwnExport, "jax", usual).P50)
	queue := j.row(bench.TorchQueue, "torch", usual)
	j.faster("torch view, "+size+", against "+bench.TorchQueue+", p50", torch.P50, queue.P50, 100)
	j.faster("torch view, "+size+", against "+bench.TorchQueue+", p99", torch.P99, queue.P99, 100)
	for _, framework := range frameworks() {
		j.atMost(fmt.Sprintf("%s view of %s, p50", framework, bench.SizeText(large)), j.row(ours, framework, large).P50,
			1.1, "that of "+bench.SizeText(small), j.row(ours, framework, small).P50)
	}
	busy := j.row(publishedBusy, "numpy", usual)
	j.within("published array, Python busy, p50", busy.P50, time.Microsecond)
	j.within("published array, Python busy, p99", busy.P99, 5*time.Microsecond)
	const switchInterval = 5 * time.Millisecond // Python's default
	j.within("array not published, Python busy, p50: the switch interval", j.row(pulledBusy, "numpy", usual).P50, switchInterval)
	j.atMost("numpy view, "+size+", asleep, p50", j.row(oursAsleep, "numpy", usual).P50, 1.5, bareFutex, j.row(bareFutex, "", 0).P50)
	j.allocations()
	j.idle("host", r.Idle.Host)
	j.idle("program", r.Idle.Program)
	j.hammer(r.Hammer)
	j.memory(r.Memory)
	return j.goals
}

// allocations holds all views through the ring to none. What goes on beside them in the host's process is
// less than one for two calls.
func (j *judge) allocations() {
	most, of := 0.0, bench.Key{}
	for _, row := range j.rows {
		if row.Allocations != nil && row.Way != oursGRPC && *row.Allocations >= most {
			most, of = *row.Allocations, row.Key
		}
	}
	j.add("allocations per view on the host", "0", fmt.Sprintf("%.2f (%s)", most, of), most < 0.5)
}

func (j *judge) idle(side string, share float64) {
	j.add("idle CPU of the "+side+" with a session open", "< 0.5 % of a core", fmt.Sprintf("%.2f %%", share*100), share < 0.005)
}

// hammer holds the callers at full rate to no mistake and to no growth: what varies is far less than a
// leak of one byte a view.
func (j *judge) hammer(h *hammered) {
	const slack = 8 * bench.MiB
	figure := fmt.Sprintf("%d callers at full rate for %v", h.Callers, h.For.Round(time.Second))
	j.add(figure, "no error, all answers right", fmt.Sprintf("%d errors, %d wrong of %d views %s", h.Errors, h.Wrong, h.Views, h.First),
		h.Errors+h.Wrong == 0 && h.Views > 0)
	j.add(figure, "no growth", fmt.Sprintf("host %+.1f MiB, %+d descriptors; program %+.1f MiB, %+d", h.Host.mebibytes(),
		h.Host.Descriptors, h.Program.mebibytes(), h.Program.Descriptors),
		max(h.Host.Resident, h.Program.Resident) < slack && max(h.Host.Descriptors, h.Program.Descriptors) <= 0)
}

func (h holdings) mebibytes() float64 { return float64(h.Resident) / bench.MiB }
