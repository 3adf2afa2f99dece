package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func alarm(tb testing.TB, text string) Alarm {
	tb.Helper()
	a, err := ParseAlarm(text)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestParseAlarm(t *testing.T) {
	t.Parallel()
	s := &stats.Summary{Len: 4, Seen: 4, NaN: 1, Zero: 2, Positive: 1, Min: -200, Max: 1, Norm: 150}
	for text, want := range map[string]bool{
		"nan": true, "inf": false, "norm>100": true, "norm > 1e3": false, "norm>=150": true, "absmax<=200": true, "min<-199": true,
		"zero>0.5": false, "zero>=0.5": true, "stale>2s": true, "stale>1m": false, "w*: nan": true, `d["a:b"]:nan`: false, "w: nan": true, "v*: nan": false,
	} {
		a := alarm(t, text)
		if got := a.concerns("w", false) && a.holds(a.value(s, 3*time.Second)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if a.String() != text {
			t.Errorf("%q is %q", a, text)
		}
	}
	for _, text := range []string{"", "norm", "norm>", "norm>x", "norm>nan", "median>3", "stale>3", "stale", "w: ", "norm=3"} {
		if a, err := ParseAlarm(text); err == nil {
			t.Errorf("%q is %+v", text, a)
		}
	}
	for name, want := range map[string]bool{"layers[3].weight": true, "layers[3].bias": false, "xlayers.weight": false, "layers.weight": false} {
		if a := alarm(t, "layers[*].weight: nan"); a.concerns(name, false) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestPointlessAlarms refuses conditions that always hold, or never.
func TestPointlessAlarms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"stale>-1s": "stale>-1s always holds: stale is a time, and never negative", "stale<0s": "stale<0s can never hold: stale is a time, and never negative",
		"w: zero > 2": "zero > 2 can never hold: zero is a share, between 0 and 1", "negative>=0": "negative>=0 always holds: negative is a share, between 0 and 1",
		"positive<=1": "positive<=1 always holds: positive is a share, between 0 and 1", "nan<0": "nan<0 can never hold: nan is never negative",
		"norm>=-1": "norm>=-1 always holds: norm is never negative", "zero>=1": "", "zero<=0": "", "stale<=0s": "", "nan>1e9": "", "norm>=inf": "", "min>-1": "", "mean<-1": "",
	} {
		got := ""
		if _, err := ParseAlarm(text); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestNamedOnce says an array's name once, though its alarm has it, too.
func TestNamedOnce(t *testing.T) {
	t.Parallel()
	for alarm, want := range map[string]string{
		`d["a:b"]: norm>5`: `d["a:b"]: norm>5: norm is 6`, `d["a:b"]:norm>5`: `d["a:b"]: norm>5: norm is 6`,
		"d*: norm>5": `d["a:b"]: d*: norm>5: norm is 6`, "norm>5": `d["a:b"]: norm>5: norm is 6`,
	} {
		if got := (Event{Name: `d["a:b"]`, Alarm: alarm, Figure: "norm", Value: 6}).String(); got != want {
			t.Errorf("%s: %q, want %q", alarm, got, want)
		}
	}
}

// each is a program whose arrays are asked for one by one. What it knows an array by is what gives a view of it.
type each struct{ number int }

type looking func(ctx context.Context, v *core.View) (*core.View, error)

func (each) Refresh(ctx context.Context, looks []Look) {
	for i := range looks {
		l := &looks[i]
		look, _ := l.Of.(looking)
		l.View, l.Err = look(ctx, l.View)
	}
}

// array is one of each.
func array(name string, look looking) Array { return Array{Name: name, Program: each{}, Of: look} }

// of is a look at a view.
func of(v *core.View) looking {
	return func(context.Context, *core.View) (*core.View, error) { return v.Transpose() }
}

// rounds has a sampler look several times, and calls f before each.
func rounds(tb testing.TB, s *Sampler, n int, f func(round int)) {
	tb.Helper()
	for i := range n {
		f(i)
		if err := s.Once(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestAlarmNamesArrayAndStep plants a NaN in one of two arrays.
func TestAlarmNamesArrayAndStep(t *testing.T) {
	t.Parallel()
	good, bad, step := make([]float32, 100), make([]float32, 100), make([]int64, 1)
	var events []Event
	s := New(Options{
		Alarms: []Alarm{alarm(t, "nan"), alarm(t, "norm>5")}, Step: func(context.Context) *stats.Number { return new(stats.Number(step[0])) },
		Raised: func(e Event) { events = append(events, e) },
	})
	s.Add(array("good", of(coretest.NewView(t, good))), array("bad", of(coretest.NewView(t, bad))))
	rounds(t, s, 30, func(i int) {
		step[0] = int64(i)
		switch i {
		case 7:
			bad[50] = float32(math.NaN())
		case 9:
			bad[50] = 0
		case 12:
			bad[50] = float32(math.NaN()) // too early for another alarm
		case 14:
			bad[50] = 0
		case 28:
			bad[50], good[3] = float32(math.NaN()), 6
		}
	})
	want := []string{
		"bad: nan: 1 of 100 elements at step 7, not at step 6", "bad: nan: 1 of 100 elements at step 28, not at step 27",
		"good: norm>5: norm is 6 at step 28, not at step 27",
	}
	if len(events) != len(want) {
		t.Fatalf("events: %v", events)
	}
	for i, e := range events {
		if e.String() != want[i] {
			t.Errorf("%q, want %q", e, want[i])
		}
	}
}

func TestUnchanged(t *testing.T) {
	t.Parallel()
	data := make([]float32, 1<<20) // sampled with another part of it each time
	for i := range data {
		data[i] = float32(math.Sin(float64(i)))
	}
	s := New(Options{})
	s.Add(array("x", of(coretest.NewView(t, data))))
	var changed []time.Time
	rounds(t, s, 6, func(i int) {
		if i == 4 {
			for i := range data {
				data[i] *= 1.5
			}
		}
		if i > 0 {
			changed = append(changed, s.State().Arrays[0].Changed)
		}
	})
	if !changed[0].Equal(changed[3]) || changed[3].Equal(changed[4]) {
		t.Errorf("changed at %v", changed)
	}
}

// TestErrorsAreOfTheirArrays looks at an array that is not there at first.
func TestErrorsAreOfTheirArrays(t *testing.T) {
	t.Parallel()
	v, there := coretest.NewView(t, []float32{1}), false
	s := New(Options{})
	s.Add(array("late", func(ctx context.Context, w *core.View) (*core.View, error) {
		if !there {
			return w, errors.New("not found")
		}
		return of(v)(ctx, w)
	}), array("early", of(v)))
	for _, want := range []string{"not found", ""} {
		rounds(t, s, 1, func(int) {})
		if a := s.State().Arrays; a[1].Error != want || a[0].Error != "" || a[1].Name != "late" {
			t.Errorf("%+v", a)
		}
		there = true
	}
}

// odd is a sampler that has seen arrays with odd names and figures.
func odd(tb testing.TB) *Sampler {
	tb.Helper()
	s := New(Options{Alarms: []Alarm{alarm(tb, "nan")}, Step: func(context.Context) *stats.Number { return new(stats.Number(12)) }})
	s.Add(
		array(`d["a\b"]`+"\n", of(coretest.NewView(tb, []float64{1, math.NaN(), math.Inf(-1)}))),
		array("none", of(coretest.NewView(tb, []float64{math.NaN()}))),
		array("gone", func(context.Context, *core.View) (*core.View, error) { return nil, errors.New("gone") }),
	)
	rounds(tb, s, 2, func(int) {})
	return s
}

// TestMetrics has Prometheus' own parser read what is served.
func TestMetrics(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(odd(t).Handler())
	defer server.Close()
	text := fetch(t, server.URL+"/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	values := map[string]float64{}
	for family, all := range families {
		for _, m := range all.GetMetric() {
			labels := []string{family}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := strings.Join(labels, " ")
			values[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		if all.GetHelp() == "" || len(all.GetMetric()) == 0 {
			t.Errorf("%s has no help, or no metric", family)
		}
	}
	name := ` d["a\b"]` + "\n"
	for key, want := range map[string]float64{
		"ndbridge_array_nan" + name: 1, "ndbridge_array_inf" + name: 1, "ndbridge_array_min" + name: 1, "ndbridge_array_mean none": math.NaN(),
		"ndbridge_array_up gone": 0, "ndbridge_array_up none": 1, "ndbridge_array_looks_total none": 2, "ndbridge_array_step none": 12,
		"ndbridge_watch_rounds_total": 0,
	} {
		if got, there := values[key]; !there || got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%q is %v, want %v", key, got, want)
		}
	}
	found := false
	for key := range values {
		found = found || strings.HasPrefix(key, "ndbridge_array_alarm") && strings.Contains(key, name[1:]) && strings.Contains(key, "nan")
	}
	if !found {
		t.Errorf("no alarm among %v", values)
	}
	var state struct {
		Arrays []struct{ Name string }
		Usage  struct{ Since time.Time }
	}
	if err := json.Unmarshal(fetch(t, server.URL+"/stats.json"), &state); err != nil || len(state.Arrays) != 3 {
		t.Errorf("%v: %+v", err, state)
	}
}

func fetch(tb testing.TB, url string) []byte {
	tb.Helper()
	answer, err := http.Get(url) //nolint:noctx // of this process
	if err != nil {
		tb.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		tb.Fatalf("%v, %s: %s", err, answer.Status, text)
	}
	http.DefaultClient.CloseIdleConnections()
	return text
}

// TestOnlyThisMachineIsServed refuses addresses and names that are not this machine's own.
func TestOnlyThisMachineIsServed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", "example.org:80", "[::]:0", "9400"} {
		if l, err := Listen(t.Context(), address); err == nil {
			_ = l.Close()
			t.Errorf("listens at %s", address)
		}
	}
	l, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, odd(t).Handler()) }()
	for host, want := range map[string]int{l.Addr().String(): 200, "localhost": 200, "evil.example.org": 403} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s", host, answer.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/hook" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		bodies <- body
	}))
	defer server.Close()
	e := Event{Name: "w", Alarm: "nan", Figure: "nan", Value: 1, Seen: 4, Len: 4, Step: new(stats.Number(3))}
	if err := Post(t.Context(), server.URL+"/hook", "trainer", e); err != nil {
		t.Fatal(err)
	}
	if body := <-bodies; body["text"] != "w: nan: 1 of 4 elements at step 3" || body["program"] != "trainer" || body["step"] != 3.0 {
		t.Errorf("%v", body)
	}
	if err := Post(t.Context(), server.URL, "trainer", e); err == nil {
		t.Error("a refused webhook is no error")
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestAddAtTheEnd adds arrays while the sampler ends.
func TestAddAtTheEnd(t *testing.T) {
	t.Parallel()
	s := New(Options{Interval: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	look := of(coretest.NewView(t, []float64{1}))
	for i := range 200 {
		if i == 100 {
			cancel()
		}
		s.Add(array(strconv.Itoa(i), look))
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the end: %v, want context.Canceled", err)
	}
}

// TestAlarmsAreOfAnArrayOnce watches one array under three names, which nobody has given, and one that somebody has.
func TestAlarmsAreOfAnArrayOnce(t *testing.T) {
	t.Parallel()
	data := make([]float32, 100)
	v := coretest.NewView(t, data)
	raised := make(map[string]int)
	s := New(Options{Alarms: []Alarm{alarm(t, "nan")}, Raised: func(e Event) { raised[e.Name]++ }})
	for _, name := range []string{"a", "b", "c"} {
		s.Add(Array{Name: name, Program: each{}, Of: of(v), Passing: true})
	}
	s.Add(array("named", of(v)), Array{Name: "other", Program: each{}, Of: of(coretest.NewView(t, []float32{float32(math.NaN())})), Passing: true})
	rounds(t, s, 5, func(round int) {
		if round == 2 {
			data[3] = float32(math.NaN())
		}
	})
	if len(raised) != 3 || raised["a"] != 1 || raised["named"] != 1 || raised["other"] != 1 {
		t.Errorf("alarms: %v", raised)
	}
}
