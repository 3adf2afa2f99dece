package bench

import (
	"context"
	"slices"
)

// Plan collects what one run measures.
type Plan struct {
	Sizes  []int // of arrays, in bytes, the smallest first
	Rounds int
	Turn   int // calls of a view in a turn

	Subjects []*Subject
	LeftOut  []LeftOut
}

// Shared is the least of the sizes whose arrays programs share as they are; smaller ones are copied.
func (p *Plan) Shared() int {
	const threshold = 64 << 10 // of the shared heap, if nobody sets it
	i := slices.IndexFunc(p.Sizes, func(size int) bool { return size >= threshold })
	return p.Sizes[max(i, 0)]
}

// LeftOut is a way that could not be measured.
type LeftOut struct {
	Way string `json:"way"`
	Why string `json:"why"`
}

// LeaveOut notes why a way is not measured.
func (p *Plan) LeaveOut(way, why string) { p.LeftOut = append(p.LeftOut, LeftOut{way, why}) }

// Run measures all in turns.
func (p *Plan) Run(ctx context.Context) (Rows, error) { return Interleave(ctx, p.Rounds, p.Subjects) }

// Add has callers measured, who call at the same time. A turn of calls follows as many that do not count, at
// most 50: until the scheduler has found a CPU for each of those that have just woken up.
func (p *Plan) Add(k Key, calls int, callers ...Caller) *Subject {
	s := &Subject{Key: k, Turn: Calls(warmUp(calls), calls, callers...)}
	p.Subjects = append(p.Subjects, s)
	return s
}

func warmUp(calls int) int { return min(calls, 50) }

// AddViews has views of a program's arrays of all sizes measured, and counts what they cost the heap of this
// process.
func (p *Plan) AddViews(program *Program, way, framework string, calls int) error {
	for _, size := range p.Sizes {
		caller, err := program.Caller(Name(framework, size))
		if err != nil {
			return err
		}
		p.Add(Key{Way: way, Framework: framework, Bytes: size}, calls, caller).Count = caller
	}
	return nil
}

// AddWorker has a way measured that a process measures by itself, for each size. It is left out if it cannot
// be had.
func (p *Plan) AddWorker(w *Worker, way, framework string, pace Pace) {
	for i, size := range p.Sizes {
		k := Key{Way: way, Framework: framework, Bytes: size}
		if i == 0 {
			if _, err := w.Measure(k, 0, 1); err != nil {
				p.LeaveOut(way+", "+framework, err.Error())
				return
			}
		}
		calls, every := pace(p, size)
		warm := 0
		if calls > 1 {
			warm = warmUp(calls)
		}
		p.Subjects = append(p.Subjects, &Subject{Key: k, Turn: w.Turn(k, warm, calls), Every: every})
	}
}

// Pace says how often a way is measured: how many calls in a turn, in one of how many rounds.
type Pace func(p *Plan, size int) (calls, every int)

// InProcess is the pace of what takes a microsecond.
func InProcess(p *Plan, _ int) (calls, every int) { return p.Turn, 1 }

// AnySize is the pace of what takes as long for all sizes.
func AnySize(p *Plan, _ int) (calls, every int) { return max(p.Turn/10, 1), 1 }

// Copied is the pace of what copies the array.
func Copied(p *Plan, size int) (calls, every int) {
	switch {
	case size < MiB:
		return max(p.Turn/10, 1), 1
	case size < 32*MiB:
		return max(p.Turn/100, 1), 1
	case size < GiB:
		return 1, max(p.Rounds/10, 1)
	default:
		return 1, max(p.Rounds/2, 1)
	}
}
