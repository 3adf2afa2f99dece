package watch

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestSamplesReadAllInTurn finds one NaN after as many looks as a sample goes into the array, wherever it is, though each look takes another time.
func TestSamplesReadAllInTurn(t *testing.T) {
	t.Parallel()
	data := make([]float32, 1<<21)
	s := New(Options{Budget: 1e-4})
	s.Add(array("x", of(coretest.NewView(t, data))))
	rounds(t, s, 20, func(int) {})
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // places
	const planted = 40
	late := 0
	for range planted {
		place := random.IntN(len(data))
		data[place] = float32(math.NaN())
		read, found := 0, false
		for !found && read < 20*len(data) {
			rounds(t, s, 1, func(int) {})
			last := s.State().Arrays[0].Last
			read, found = read+last.Seen, last.NaN > 0
			if run := last.Seen / last.Runs; run < 256 || last.Runs < leastRuns {
				t.Fatalf("%d runs of %d neighbours", last.Runs, run)
			}
		}
		if read > len(data)+len(data)/8 {
			late++
		}
		data[place] = 0
	}
	// Samples whose size has changed a lot begin anew: on a busy machine one may be late.
	if late > planted/8 {
		t.Errorf("%d of %d were found late", late, planted)
	}
}

// TestSamplesSayNothingOfWhatTheyMiss plants a NaN, once, in an array of which each look reads a part: samples may miss it for a while. An alarm
// says of no step after that that there was none, and of no step before all elements were read that there was none.
func TestSamplesSayNothingOfWhatTheyMiss(t *testing.T) {
	t.Parallel()
	const planted = 200
	missed, known := 0, 0
	for place := range 8 {
		data, step := make([]float32, 1<<18), 0
		var event *Event
		s := New(Options{
			Budget: 1e-9, Alarms: []Alarm{alarm(t, "nan")}, Step: func(context.Context) *stats.Number { return new(stats.Number(step)) },
			Raised: func(e Event) { event = &e },
		})
		s.Add(array("x", of(coretest.NewView(t, data))))
		for ; event == nil && step < 10*planted; step++ {
			if step == planted {
				data[place*len(data)/8+12_345] = float32(math.NaN())
			}
			rounds(t, s, 1, func(int) {})
		}
		switch {
		case event == nil:
			t.Fatal("no alarm")
		case event.Before == nil:
		case *event.Before >= planted:
			t.Errorf("%s, but it was there from step %d", event, planted)
		default:
			known++
		}
		if event != nil && *event.Step > planted {
			missed++
		}
	}
	if missed == 0 || known == 0 {
		t.Errorf("%d were missed at first, and of %d it was known when they were not there", missed, known)
	}
}

// TestHistogramSaysOfHowMany has a histogram of a sample beside figures of all elements, and says so.
func TestHistogramSaysOfHowMany(t *testing.T) {
	t.Parallel()
	s := New(Options{Bins: stats.Auto})
	data := make([]float32, 20_000)
	for i := range data {
		data[i] = float32(i)
	}
	s.Add(array("x", of(coretest.NewView(t, data))))
	rounds(t, s, 1, func(int) {})
	text, err := json.Marshal(s.State().Arrays[0].Last)
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		Exact     bool
		Seen      int
		Histogram struct {
			Seen, Below, Above int
			Counts             []int
		}
	}
	if err := json.Unmarshal(text, &last); err != nil {
		t.Fatal(err)
	}
	h := last.Histogram
	all := h.Below + h.Above
	for _, n := range h.Counts {
		all += n
	}
	if !last.Exact || last.Seen != len(data) || h.Seen != all || h.Seen > 2*binSample || h.Seen < binSample/2 {
		t.Errorf("%d elements, a histogram of %d that says %d", last.Seen, all, h.Seen)
	}
}
