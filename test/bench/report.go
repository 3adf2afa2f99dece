package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/ndbridge/ndbridge/internal/bench"
)

// report is what build/bench/handoff.json holds. Durations are in nanoseconds.
type report struct {
	Machine bench.Machine   `json:"machine"`
	Goals   []goal          `json:"goals"`
	Rows    bench.Rows      `json:"rows"`
	LeftOut []bench.LeftOut `json:"left_out"`
	Idle    idleCost        `json:"idle"`
	Hammer  *hammered       `json:"hammer"`

	CallHammer *hammeredCalls `json:"call_hammer"`

	Heap   []heapRow   `json:"shared_heap"`
	Memory []memoryRow `json:"shared_heap_memory"`
	Forks  *forked     `json:"shared_heap_forks"`

	Attaching *attached `json:"attaching"`
	Training  *trained  `json:"training"`
	Epochs    *epochs   `json:"epochs"`
	Shown     *shown    `json:"shown"`
}

func (r *report) print(out io.Writer) error {
	m := r.Machine
	fmt.Fprintf(out, "\n%d x %s, Linux %s, %s, %s", m.CPUs, m.Model, m.Kernel, m.Go, m.Interpreter)
	for _, name := range frameworks() {
		fmt.Fprintf(out, ", %s %s", name, m.Frameworks[name])
	}
	fmt.Fprintln(out)
	if len(r.Rows) > 0 {
		fmt.Fprint(out, "\nTime from the request until the last element of an array was read. Copies that a way makes are part of its time.\n"+
			"ndbridge refreshes a view, where nothing else is said. __dlpack__ and StridedMemoryView are in one process: no\n"+
			"other gets the array. A call gives an array to a function of the other process, which returns its last element.\n\n")
		if err := r.Rows.Print(out); err != nil {
			return err
		}
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(out, "left out: %s: %s\n", l.Way, l.Why)
	}
	if len(r.Heap) > 0 {
		printHeap(out, r.Heap)
	}
	if len(r.Memory) > 0 {
		printMemory(out, r.Memory)
	}
	printForks(out, r.Forks)
	printTraining(out, r.Training)
	printEpochs(out, r.Epochs)
	printShown(out, r.Shown)
	fmt.Fprint(out, "\nThe goals, all of this run.\n\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tgoal\tmeasured\tgoal met")
	for _, g := range r.Goals {
		met := "no"
		if g.Met {
			met = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", g.Figure, g.Goal, g.Measured, met)
	}
	return table.Flush()
}
