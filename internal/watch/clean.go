package watch

import (
	"slices"

	"github.com/ndbridge/ndbridge/stats"
)

// sweep is a row of looks at samples that together read all elements, and none of which has met the condition of an alarm.
type sweep struct {
	from  *stats.Number // the step before the first look
	looks int
	seen  int // of each sample
	len   int
	seed  uint64 // of the last look
}

// notMet notes that a look has not met the condition of an alarm, before which the program was at a step. A sample says nothing of the elements
// that it has not read: the condition was not met at a step if all elements were read since.
func (w *watched) notMet(a Alarm, sum *stats.Summary, before *stats.Number) {
	if sum.Exact() || a.figure == stale { // a change is one, wherever it was seen
		w.clean[a.text] = before
		delete(w.sweeps, a.text)
		return
	}
	row := w.sweeps[a.text]
	if row.seen != sum.Seen || row.len != sum.Len || row.seed+1 != w.seed { // the samples began anew
		row = sweep{from: before, seen: sum.Seen, len: sum.Len}
	}
	row.looks++
	row.seed = w.seed
	w.sweeps[a.text] = row
	if row.looks == sum.Sweep {
		w.clean[a.text] = row.from
		delete(w.sweeps, a.text)
	}
}

// told reports whether an alarm was raised for an array's memory under another name.
func (s *Sampler) told(w *watched, a Alarm) bool {
	if w.view == nil || w.view.Addr() == 0 {
		return false
	}
	return slices.ContainsFunc(s.all(), func(o *watched) bool {
		_, raised := o.quiet[a.text]
		return raised && o != w && o.view != nil && o.view.Addr() == w.view.Addr() && o.view.Device() == w.view.Device() &&
			o.view.DType() == w.view.DType() && o.view.NBytes() == w.view.NBytes()
	})
}
