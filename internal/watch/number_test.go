package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestNumbers records numbers, which may become arrays and come back, and raises alarms of them with the program's step.
func TestNumbers(t *testing.T) {
	t.Parallel()
	now := map[string]Number{}
	step, asked := 0, 0
	var events []string
	s := New(Options{
		Alarms: []Alarm{alarm(t, "nan"), alarm(t, "max>5"), alarm(t, "l*: inf"), alarm(t, "best: max>5")},
		Step: func(context.Context) *stats.Number {
			step++
			return new(stats.Number(step))
		},
		Numbers: func(context.Context) map[string]Number {
			asked++
			return now
		},
		Raised: func(e Event) { events = append(events, e.String()) },
	})
	fails := errors.New("no array")
	two := of(coretest.NewView(t, []float64{2}))
	from := func(first int) looking {
		return func(ctx context.Context, v *core.View) (*core.View, error) {
			if step < first {
				return nil, fails
			}
			return two(ctx, v)
		}
	}
	s.Add(array("loss", from(10)), array("best", from(1000)))
	for _, x := range []float64{0.5, 0.25, math.NaN(), math.Inf(1)} {
		now["loss"], now["best"] = Number{"float", x}, Number{"int", 7}
		rounds(t, s, 1, func(int) {})
	}
	all := s.State().Arrays
	best, loss := all[0], all[1]
	var values []string
	for _, p := range loss.History {
		values = append(values, fmt.Sprint(float64(p.Mean), " at ", float64(*p.Step)))
	}
	// Each round reads the step before it asks for numbers, and once after it for all of them.
	if got := strings.Join(values, ", "); got != "0.5 at 2, 0.25 at 4, NaN at 6, +Inf at 8" || asked != 4 {
		t.Errorf("%s, asked %d times", got, asked)
	}
	if !loss.Number || loss.Type != "float" || best.Type != "int" || loss.Looks != 4 || loss.Error != "" || !best.Changed.Before(loss.Changed) {
		t.Errorf("loss is %+v, best %+v", loss, best)
	}
	if got, want := strings.Join(events, "; "),
		"best: max>5: max is 7 at step 2; loss: nan: 1 of 1 elements at step 6, not at step 3; loss: l*: inf: 1 of 1 elements at step 8, not at step 5"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	text := metricsOf(t, s)
	for _, want := range []string{"\nndbridge_number{name=\"loss\"} +Inf\n", "\nndbridge_number{name=\"best\"} 7\n", `ndbridge_array_alarm{array="best",alarm="best: max>5"} 1`} {
		if !strings.Contains(text, want) || strings.Contains(text, `mean{array="loss"}`) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	delete(now, "loss")
	step = 10
	rounds(t, s, 1, func(int) {})
	if loss := s.State().Arrays[1]; loss.Number || loss.Type != "float64" || loss.Error != "" || float64(loss.Last.Mean) != 2 || len(loss.History) != 5 {
		t.Errorf("as an array it is %+v", loss)
	}
	now["loss"] = Number{"int", 3}
	rounds(t, s, 1, func(int) {})
	if loss := s.State().Arrays[1]; !loss.Number || loss.Type != "int" || len(loss.Shape) != 0 || loss.NBytes != 0 {
		t.Errorf("as a number again it is %+v", loss)
	}
	clear(now)
	rounds(t, s, 1, func(int) {})
	if text := metricsOf(t, s); strings.Contains(text, `{name="best"}`) {
		t.Errorf("a number that is gone has a value:\n%s", text)
	}
}

func metricsOf(t *testing.T, s *Sampler) string {
	t.Helper()
	var b strings.Builder
	if err := WriteMetrics(&b, s.State()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
