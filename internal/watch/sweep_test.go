package watch

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
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
