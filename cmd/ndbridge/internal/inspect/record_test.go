package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/watch"
	"github.com/ndbridge/ndbridge/stats"
)

// TestRecordsWhatIsThere has a program go from some names to others, again and again: those that it has are looked at, and no others, however many
// there were before.
func TestRecordsWhatIsThere(t *testing.T) {
	t.Parallel()
	alarm, err := watch.ParseAlarm("nan")
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(t.Context(), Options{Session: startProgram(t, ""), Alarms: []watch.Alarm{alarm}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.listener.Close()
	r := server.hub.recorder
	for from := range 4 {
		var all contract.Found
		there := make(map[string]bool)
		for i := range maxFound {
			all.Entries = append(all.Entries, contract.Entry{Name: fmt.Sprintf("a%d", from*maxFound/2+i)})
			there[all.Entries[i].Name] = true
		}
		r.listed(nil, all)
		r.listed(nil, all)
		for name := range there {
			if shown := r.shown[name]; shown == nil || !shown.Load() {
				t.Fatalf("%s is not looked at, after %d names", name, from*maxFound/2+maxFound)
			}
		}
		for name, shown := range r.shown {
			if shown.Load() && !there[name] {
				t.Fatalf("%s is looked at, and not there", name)
			}
		}
		if n := len(r.sampler.State().Arrays); n != len(r.shown) || n > maxRecorded {
			t.Errorf("%d arrays are recorded, and %d are known", n, len(r.shown))
		}
	}
}

// TestScalarsThatAreNoVariables records arrays of one element wherever they are, the variables first, and no more than are drawn.
func TestScalarsThatAreNoVariables(t *testing.T) {
	t.Parallel()
	server, err := New(t.Context(), Options{Session: startProgram(t, ""), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.listener.Close()
	r := server.hub.recorder
	layout := func(shape ...int) core.Layout {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	variables := []contract.Entry{{Name: "loss", Layout: layout(1)}, {Name: "x", Layout: layout(3)}}
	others := []contract.Entry{{Name: "m.weight", Layout: layout(3)}}
	for i := range maxScalars {
		others = append(others, contract.Entry{Name: fmt.Sprintf("m.steps[%d]", i), Layout: layout()})
	}
	last := others[maxScalars].Name
	check := func(names ...string) {
		t.Helper()
		count := 0
		for _, shown := range r.shown {
			if shown.Load() {
				count++
			}
		}
		if count != maxScalars || len(r.scalars) != maxScalars {
			t.Errorf("%d are looked at and %d drawn, want %d", count, len(r.scalars), maxScalars)
		}
		for _, name := range names {
			if shown := r.shown[name]; shown == nil || !shown.Load() || !r.scalars[name] {
				t.Errorf("%s is not drawn", name)
			}
		}
	}
	r.listed(variables, contract.Found{Entries: append(others, variables...)})
	check("loss", "m.steps[0]")
	slices.Reverse(others)
	r.listed(variables, contract.Found{Entries: append(others, variables...)})
	check("loss", last)
}

// TestRecordingHasWhatPagesLeave gives alarms all of the budget while no page shows an array.
func TestRecordingHasWhatPagesLeave(t *testing.T) {
	t.Parallel()
	server, err := New(t.Context(), Options{Session: startProgram(t, ""), Budget: 0.5, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.listener.Close()
	h := server.hub
	h.alive = t.Context()
	c := &client{out: newOutbox(), has: map[string]time.Time{}}
	for range 2 {
		if limit := h.recorder.sampler.Budget(); limit != 0.5 {
			t.Errorf("%v are for what is recorded, though no page shows an array", limit)
		}
		h.mu.Lock()
		h.see(c, look{Name: "x", Auto: true, Width: 1, Height: 1, Line: -1})
		h.mu.Unlock()
		if limit, pages := h.recorder.sampler.Budget(), h.pace.Limit(); limit != 0.5*recordShare || pages != 0.5*(1-recordShare) {
			t.Errorf("%v and %v are for what is recorded and for pages, of 0.5", limit, pages)
		}
		h.mu.Lock()
		h.unsee(c)
		h.mu.Unlock()
	}
	h.wait()
}

// TestHistoryBecomesLine has a page that sees an array whose name comes to mean a number, which stays: once the page shows that, it is told the value.
func TestHistoryBecomesLine(t *testing.T) {
	t.Parallel()
	server, err := New(t.Context(), Options{Session: startProgram(t, ""), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.listener.Close()
	h := server.hub
	h.alive = t.Context()
	c := &client{out: newOutbox(), has: map[string]time.Time{}}
	h.mu.Lock()
	h.see(c, look{Name: "x", Auto: true, Width: 1, Height: 1, Line: -1})
	now := time.Now()
	h.recorder.numbers["x"] = 0
	h.recorder.state.Arrays = []watch.Series{{Name: "x", Number: true, Changed: now, Last: new(stats.Summary), History: []watch.Point{{Time: now, Mean: 5}}}}
	for _, topic := range []string{"history", "scalars"} {
		h.offerPast(c)
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		for found := false; !found; {
			m, err := c.out.next(ctx)
			if err != nil {
				t.Fatalf("no %s: %v", topic, err)
			}
			var p past
			found = json.Unmarshal(m.bytes, &p) == nil && p.Topic == topic && len(p.Series) == 1 && p.Series[0].Mean[0] == 5
		}
		cancel()
		h.mu.Lock()
		h.unsee(c)
	}
	h.mu.Unlock()
	h.wait()
}

// TestAlarmsAreOfAllNames raises an alarm for a name under which its array is not listed, also if it has got that name later.
func TestAlarmsAreOfAllNames(t *testing.T) {
	t.Parallel()
	alarm, err := watch.ParseAlarm("model.*: max>=0")
	if err != nil {
		t.Fatal(err)
	}
	session := startProgram(t, "import numpy as np\nx = np.zeros(3)\n")
	if err := session.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	server, err := New(t.Context(), Options{Session: session, Alarms: []watch.Alarm{alarm}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.listener.Close()
	r := server.hub.recorder
	for _, also := range [][]string{nil, {"model.weight", "other"}} {
		r.listed(nil, contract.Found{Entries: []contract.Entry{{Name: "x", Also: also}}})
		if err := r.sampler.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if events := r.sampler.State().Events; len(events) != 1 || events[0].Name != "model.weight" {
		t.Errorf("%+v", events)
	}
}

// TestAlarmsAreToldAtOnce: pages know of an alarm before the round in which it was raised is over.
func TestAlarmsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	alarm, err := watch.ParseAlarm("nan")
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(&Options{Session: startProgram(t, ""), Budget: 1, Alarms: []watch.Alarm{alarm}})
	c := &client{out: newOutbox(), has: map[string]time.Time{}}
	h.clients[c] = struct{}{}
	told := ""
	next := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m, err := c.out.next(ctx)
		if err != nil {
			t.Error(err)
		}
		told = string(m.bytes)
	}
	bad, good := coretest.NewView(t, []float64{math.NaN()}), coretest.NewView(t, []float64{1})
	h.recorder.sampler.Add(watch.Array{Name: "x", Program: looksAt{bad}}, watch.Array{Name: "y", Program: looksAt{good}, Of: next})
	if err := h.recorder.sampler.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told, `"name":"x"`) {
		t.Errorf("%q was told before y was looked at", told)
	}
}

// looksAt is a program whose arrays are all the same.
type looksAt struct{ view *core.View }

// Refresh implements [watch.Program]. What the arrays are known by is called.
func (p looksAt) Refresh(_ context.Context, looks []watch.Look) {
	for i := range looks {
		if f, ok := looks[i].Of.(func()); ok {
			f()
		}
		looks[i].View = p.view
	}
}

// TestNewerSaysOfHowMany: points say whether they are of a sample, and one number that is not finite which it is.
func TestNewerSaysOfHowMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last *stats.Summary
		some bool
		now  string
	}{
		{nil, false, ""},
		{&stats.Summary{Len: 9, Seen: 9, Zero: 9}, false, ""},
		{&stats.Summary{Len: 9, Seen: 3, Runs: 1, Zero: 3}, true, ""},
		{&stats.Summary{Len: 1, Seen: 1, NaN: 1}, false, "NaN"},
		{&stats.Summary{Len: 1, Seen: 1, NegInf: 1}, false, "-Inf"},
		{&stats.Summary{Len: 2, Seen: 2, NaN: 2}, false, ""},
	} {
		s := watch.Series{Last: c.last}
		if c.last != nil {
			s.History = []watch.Point{{Time: time.Now()}}
		}
		if p := newer(&s, time.Time{}, true); p.Some != c.some || p.Now != c.now {
			t.Errorf("%+v: some %v, now %q", c.last, p.Some, p.Now)
		}
	}
}
