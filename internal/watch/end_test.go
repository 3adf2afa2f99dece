package watch

import (
	"context"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestWhatWasSeenAtTheEndIsTold ends the watch before an array is summed up, and before a number is: what was seen by then is told, with its step.
func TestWhatWasSeenAtTheEndIsTold(t *testing.T) {
	t.Parallel()
	bad := coretest.NewView(t, []float64{math.NaN()})
	for name, number := range map[string]bool{"number": true, "array": false} {
		ctx, cancel := context.WithCancel(t.Context())
		var events []string
		steps, ended := 0, 0
		end := func() {
			steps = 0
			ended++
		}
		s := New(Options{
			Alarms: []Alarm{alarm(t, "nan")}, Raised: func(e Event) { events = append(events, e.String()) },
			Numbers: func(context.Context) map[string]Number {
				if !number {
					return nil
				}
				end()
				return map[string]Number{"number": {"float", math.NaN()}}
			},
			Step: func(ctx context.Context) *stats.Number {
				if steps++; ended > 0 && steps == 1 {
					cancel()
				}
				if ctx.Err() != nil {
					return nil
				}
				return new(stats.Number(ended))
			},
		})
		s.Add(array(name, func(_ context.Context, v *core.View) (*core.View, error) {
			end()
			return of(bad)(ctx, v)
		}))
		if err := s.Once(ctx); err == nil {
			t.Errorf("%s: the watch goes on", name)
		}
		if want := name + ": nan: 1 of 1 elements at step 1"; len(events) != 1 || events[0] != want {
			t.Errorf("told %q, want %q", events, want)
		}
		cancel()
	}
}

// TestAlarmsThatAreSetAgain changes alarms while their condition is met: one that stays is told once, one that was taken away and set again twice.
func TestAlarmsThatAreSetAgain(t *testing.T) {
	t.Parallel()
	var events []string
	s := New(Options{Raised: func(e Event) { events = append(events, e.Alarm) }})
	s.Add(array("x", of(coretest.NewView(t, []float64{math.NaN(), 1}))))
	for _, alarms := range [][]Alarm{{alarm(t, "nan")}, {alarm(t, "nan"), alarm(t, "max>0")}, {alarm(t, "nan")}, {alarm(t, "max>0"), alarm(t, "nan")}} {
		s.SetAlarms(alarms)
		rounds(t, s, 2, func(int) {})
	}
	if want := []string{"nan", "max>0", "max>0"}; !slices.Equal(events, want) {
		t.Errorf("told %q, want %q", events, want)
	}
}

// TestMoreAlarmsThanAreKept raises an alarm of each of more arrays than alarms are kept: each is told, and counted.
func TestMoreAlarmsThanAreKept(t *testing.T) {
	t.Parallel()
	const arrays, kept = 300, 100
	told := make(map[string]int)
	s := New(Options{History: kept, Alarms: []Alarm{alarm(t, "nan")}, Raised: func(e Event) { told[e.Name]++ }})
	for i := range arrays {
		s.Add(array(strconv.Itoa(i), of(coretest.NewView(t, []float64{math.NaN()}))))
	}
	rounds(t, s, 2, func(int) {})
	if state := s.State(); len(told) != arrays || state.Raised != arrays || len(state.Events) != kept || state.Events[kept-1].Name != "99" {
		t.Errorf("%d are told, %d counted and %d kept", len(told), state.Raised, len(state.Events))
	}
}
