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

// goals holds a report to what the hand-off is to achieve. All durations are medians, where nothing else is said.
func goals(r *report, plan *bench.Plan) []goal {
	j := &judge{rows: r.Rows}
	if len(j.rows) > 0 {
		j.refreshes(plan)
		j.versions(plan)
		j.busy(plan)
		j.allocations()
		j.calls(plan)
		j.idle("host", r.Idle.Host)
		j.idle("program", r.Idle.Program)
		j.hammer(r.Hammer)
	}
	j.hammerCalls(r.CallHammer)
	j.memory(r.Memory)
	j.forks(r.Forks)
	j.attaching(r.Attaching)
	j.training(r.Training)
	j.shown(r.Shown)
	j.epochs(r.Epochs)
	return j.goals
}

func (j *judge) refreshes(plan *bench.Plan) {
	small, usual, large := plan.Sizes[0], plan.Shared(), plan.Sizes[len(plan.Sizes)-1]
	numpy, torch, jax := j.row(ours, "numpy", usual), j.row(ours, "torch", usual), j.row(ours, "jax", usual)
	size := bench.SizeText(usual)
	j.beside("numpy refresh, "+size+", in the median round", numpy, 1.5, bareMailbox, j.row(bareMailbox, "", 0))
	j.within("numpy refresh, "+size, numpy.P50, 2*time.Microsecond)
	j.within("torch refresh, "+size, torch.P50, 3*time.Microsecond)
	j.atMost("jax refresh, "+size, jax.P50, 1.5, "its own __dlpack__", j.row(bench.OwnExport, "jax", usual).P50)
	queue := j.row(bench.TorchQueue, "torch", usual)
	j.faster("torch refresh, "+size+", against "+bench.TorchQueue+", p50", torch.P50, queue.P50, 100)
	j.faster("torch refresh, "+size+", against "+bench.TorchQueue+", p99", torch.P99, queue.P99, 100)
	for _, framework := range frameworks() {
		j.beside(fmt.Sprintf("%s refresh, %s, in the median round", framework, bench.SizeText(large)), j.row(ours, framework, large),
			1.1, "that of "+size+", the smallest that is not copied", j.row(ours, framework, usual))
	}
	j.within("numpy refresh, "+bench.SizeText(small)+", copied again", j.row(ours, "numpy", small).P50, 1500*time.Nanosecond)
	for _, framework := range []string{"numpy", "torch"} {
		j.within(framework+" refresh of a group of 300", j.row(group, framework, 0).P50, 60*time.Microsecond)
	}
	first, bare := j.row(oursSilence, "numpy", usual), j.row(bareSilence, "", 0)
	j.atMost(fmt.Sprintf("numpy refresh, %s, the first after %v", size, silence), first.P50, 1.5, bareMailbox, bare.P50)
	if apart := j.row(oursApart, "numpy", usual); apart.N > 0 { // there are two CPUs
		j.beside("numpy refresh, "+size+", asleep"+onTwoCPUs+", in the median round", apart, 1.3, bareFutex, j.row(bareFutex, "", 0))
	}
}

func (j *judge) versions(plan *bench.Plan) {
	usual := plan.Shared()
	if asleep := j.row(nextAsleep+fromCall, "numpy", 0); asleep.N > 0 {
		j.beside("Next, asleep"+onTwoCPUs+fromCall+", in the median round", asleep, 1.3, bareOneWay, j.row(bareOneWay, "", 0))
		j.within("Next, spinning"+onTwoCPUs+fromReturn, j.row(nextSpinning+fromReturn, "numpy", 0).P50, 2*time.Microsecond)
	}
	j.within("Latest, nothing newer", j.row(latest, "numpy", usual).P50, 50*time.Nanosecond)
	j.within(publishTurns, j.row(publishTurns, "numpy", usual).P50, 5*time.Microsecond)
}

func (j *judge) busy(plan *bench.Plan) {
	busy := j.row(publishedBusy, "numpy", plan.Shared())
	j.within("new view of a published array, Python busy, p50", busy.P50, time.Microsecond)
	j.within("new view of a published array, Python busy, p99", busy.P99, 5*time.Microsecond)
	const switchInterval = 5 * time.Millisecond // Python's default
	j.within(fmt.Sprintf("refresh of a group of %d that is not published, Python busy, an array: the switch interval", busyNames),
		j.row(groupBusy, "numpy", 0).P50/busyNames, switchInterval)
}

// allocations holds all refreshes through shared memory, and Latest, to none. What goes on beside them in the host's
// process is less than one for two calls.
func (j *judge) allocations() {
	most, of := 0.0, bench.Key{}
	for _, row := range j.rows {
		if row.Allocations != nil && row.Way != oursGRPC && !isCall(row.Key) && *row.Allocations >= most {
			most, of = *row.Allocations, row.Key
		}
	}
	j.add("allocations per unchanged refresh on the host", "0", fmt.Sprintf("%.2f (%s)", most, of), most < 0.5)
}

func (j *judge) idle(side string, share float64) {
	j.add("idle CPU of the "+side+", with standing views", "< 0.5 % of a core", fmt.Sprintf("%.2f %%", share*100), share < 0.005)
}

// hammer holds the callers at full rate to no mistake and to no growth.
func (j *judge) hammer(h *hammered) {
	figure := fmt.Sprintf("%d callers at full rate for %v", h.Callers, h.For.Round(time.Second))
	j.add(figure, "no error, all answers right", fmt.Sprintf("%d errors, %d wrong of %d looks %s", h.Errors, h.Wrong, h.Looks, h.First),
		h.Errors+h.Wrong == 0 && h.Looks > 0)
	j.growth(figure, h.Host, h.Program)
}

// growth holds both sides to no growth: what varies is far less than a leak of one byte a look, or of one descriptor,
// segment or thread in thousands.
func (j *judge) growth(figure string, host, program holdings) {
	const memory, pieces = 8 * bench.MiB, 8
	j.add(figure, "no growth", fmt.Sprintf("host %v; program %v", host, program), max(host.Resident, program.Resident) < memory &&
		max(host.Descriptors, host.Segments, host.Threads, program.Descriptors, program.Segments, program.Threads) < pieces)
}
