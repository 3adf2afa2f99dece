package model

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

var (
	seedFlag   = flag.Uint64("model.seed", 0, "the seed of the first sequence; 0: always the same, or one of this moment if NDBRIDGE_FUZZTIME is set")
	setupFlag  = flag.String("model.setup", "", "run this setup only")
	countFlag  = flag.Int("model.count", 0, "run so many sequences of each setup; 0: for as long as NDBRIDGE_FUZZTIME says")
	eventsFlag = flag.String("model.events", "", "run the events of this file, which a failure has printed")
	findFlag   = flag.Int("model.find", 1, "go on until so many different failures are found")
	stepsFlag  = flag.Int("model.steps", 400, "how many steps a sequence has")
	ignoreFlag = flag.String("model.ignore", "", "pass over views that fail in a way that matches, to find what is behind them")
	cutFlag    = flag.Duration("model.minimise", 90*time.Second, "how long a failing sequence may be cut down")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fuzzTime is how long this package may run.
func fuzzTime(tb testing.TB) time.Duration {
	tb.Helper()
	text := os.Getenv("NDBRIDGE_FUZZTIME")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("NDBRIDGE_FUZZTIME: %v", err)
	}
	return d
}

func setups(tb testing.TB, rng *rand.Rand) []setup {
	tb.Helper()
	base, all := harness.Python(tb), harness.PythonAll(tb)
	old := harness.Pythons(tb)
	plain := func(*hostplugin.Program) {}
	low := func(p *hostplugin.Program) { p.SharedHeap.Threshold = 4096 } // so that more arrays are shared
	grpc := func(p *hostplugin.Program) { low(p); p.Handoff.Off = true }
	noHeap := func(p *hostplugin.Program) { p.SharedHeap.Off = true }
	asleep := func(p *hostplugin.Program) {
		low(p)
		p.Handoff = hostplugin.HandoffOptions{Spin: -1, Slots: 1}
	}
	list := []setup{
		{name: "numpy", python: base, frameworks: "numpy", change: low},
		{name: "all", python: all, frameworks: "numpy,torch,jax", change: low},
		{name: "numpy-default", python: base, frameworks: "numpy", change: plain},
		{name: "numpy-grpc", python: base, frameworks: "numpy", change: grpc, grpc: true},
		{name: "numpy-no-heap", python: base, frameworks: "numpy", change: noHeap},
		{name: "numpy-asleep", python: base, frameworks: "numpy", change: asleep},
		{name: "numpy-hammer", python: base, frameworks: "numpy", change: low, hammer: true},
		{name: "numpy-no-heap-hammer", python: base, frameworks: "numpy", change: noHeap, hammer: true},
		{name: "old", python: old[rng.IntN(len(old))], frameworks: "numpy", change: low},
		{name: "torch", python: all, frameworks: "numpy,torch", change: low},
		{name: "jax", python: all, frameworks: "numpy,jax", change: low},
		{name: "all-grpc", python: all, frameworks: "numpy,torch,jax", change: grpc, grpc: true},
		{name: "all-no-heap-hammer", python: all, frameworks: "numpy,torch,jax", change: noHeap, hammer: true},
		{name: "all-hammer", python: all, frameworks: "numpy,torch,jax", change: low, hammer: true},
	}
	for i := range list {
		list[i].plugin = harness.Library(tb, "ndbridge-all.so")
	}
	rng.Shuffle(len(list)-2, func(i, j int) { list[2+i], list[2+j] = list[2+j], list[2+i] })
	return list
}

// What TestModel runs if it is not told for how long: the same on each machine, however quick that is.
const (
	usualSetups    = 8
	usualSequences = 5
)

// TestModel runs random sequences for the time that NDBRIDGE_FUZZTIME gives: as many setups as that is enough
// for, the first two always.
func TestModel(t *testing.T) {
	first := firstSeed()
	f := &finder{t: t, seed: first, count: *countFlag, script: modelScript(t), kinds: map[string]bool{}, often: map[string]int{}}
	total := fuzzTime(t) * 2 / 3 // the rest is the other test's
	end := time.Now().Add(total)
	list := setups(t, rand.New(rand.NewPCG(first, 3)))
	slice := max(total/time.Duration(len(list)), 10*time.Second)
	usual := os.Getenv("NDBRIDGE_FUZZTIME") == "" && *countFlag == 0 && *setupFlag == ""
	if usual {
		list, f.count = list[:usualSetups], usualSequences
	}
	for _, s := range list {
		if *setupFlag != "" && s.name != *setupFlag || !usual && time.Now().After(end) {
			continue
		}
		limit := time.Now().Add(slice)
		if *setupFlag != "" {
			limit = end
		}
		t.Run(s.name, func(t *testing.T) { f.t = t; f.run(s, limit) })
		if len(f.kinds) >= *findFlag {
			break
		}
	}
}

// firstSeed gives the flag's, or always the same, so that a change is what makes a test fail that has passed before; whoever
// looks for what nobody has seen yet sets NDBRIDGE_FUZZTIME, as make fuzz-model does.
func firstSeed() uint64 {
	switch {
	case *seedFlag != 0:
		return *seedFlag
	case os.Getenv("NDBRIDGE_FUZZTIME") == "":
		return 1
	}
	return uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
}

// finder runs sequences and tells what fails.
type finder struct {
	t      *testing.T
	seed   uint64
	count  int // sequences of each setup; 0: for as long as there is time
	script string
	kinds  map[string]bool // what was found
	often  map[string]int  // how often each kind was
}

func (f *finder) run(s setup, limit time.Time) {
	ctx := f.t.Context()
	var r *rig
	defer func() {
		if r != nil {
			r.close()
		}
	}()
	begin, steps, count := time.Now(), 0, 0
	for ; count < max(1, f.count) || f.count == 0 && time.Now().Before(limit); count++ {
		if r == nil {
			var err error
			if r, err = startRig(ctx, s, f.script); err != nil {
				f.t.Fatal(err)
			}
			if count == 0 {
				begin = time.Now()
			}
		}
		seed := f.seed + uint64(count) //nolint:gosec // not negative
		events := generate(seed, r.hello, len(r.lookers), *stepsFlag)
		if *eventsFlag != "" {
			var err error
			if events, err = readEvents(*eventsFlag); err != nil {
				f.t.Fatal(err)
			}
		}
		err := r.run(ctx, events)
		steps += r.steps
		if err == nil {
			continue
		}
		if *eventsFlag != "" {
			f.t.Fatalf("%s\n\n%s", report(r.story, err), tail(r.log.Text()))
		}
		text, told := tail(r.log.Text()), r.told
		p := &reproducer{ctx: ctx, setup: s, script: f.script, rig: r}
		r = nil
		if f.found(p, seed, told, err, text); len(f.kinds) >= *findFlag {
			break
		}
	}
	if len(f.often) > 0 {
		f.t.Logf("failures of each kind: %v", f.often)
	}
	f.t.Logf("%d sequences, %d steps in %v: %.0f a second", count, steps, time.Since(begin).Round(time.Millisecond),
		float64(steps)/time.Since(begin).Seconds())
}

// found cuts a failing sequence down and tells it.
func (f *finder) found(p *reproducer, seed uint64, events []event, err error, log string) {
	defer p.close()
	fail, ok := errors.AsType[*failure](err)
	if !ok {
		f.t.Fatalf("seed %d, setup %s: %v\n%s", seed, p.setup.name, err, log)
	}
	again := fmt.Sprintf("go test ./test/model -run TestModel -count=1 -model.setup %s -model.seed %d -model.count 1", p.setup.name, seed)
	if f.often[fail.kind]++; f.often[fail.kind] > 3 {
		return
	}
	if p.kind = fail.kind; p.kind == died || p.kind == leaks {
		p.close()
	}
	if !p.again(events) {
		f.note(fail.kind)
		f.t.Errorf("%v\n\nIt did not happen again in %d more tries. Run: %s\n%s", err, p.tries, again, log)
		return
	}
	short := minimise(p.told, *cutFlag, p.fails)
	story, last := p.story, p.last
	if !f.note(fail.kind + ": " + gist(story)) {
		return
	}
	fresh := ""
	if !p.fresh(short) {
		fresh = " (but not in a program that has just been started)"
	}
	f.t.Errorf("%v\n\nIt fails again%s with:\n\n%s\n\nRun the whole: %s\nor what is left of it, in a file: -model.setup %s -model.events FILE\n%s\n",
		last, fresh, report(story, last), again, p.setup.name, writeEvents(short))
}

// gist is what the last statement of a story does, without names and numbers.
func gist(story []string) string {
	for _, line := range slices.Backward(story) {
		if !strings.HasPrefix(line, "#") {
			return strings.Join(regexp.MustCompile(`[a-z_]{3,}`).FindAllString(line, -1), " ")
		}
	}
	return ""
}

// note counts a failure, and reports whether it is a new one.
func (f *finder) note(key string) bool {
	if f.kinds[key] {
		return false
	}
	f.kinds[key] = true
	return true
}

func tail(text string) string { return text[max(0, len(text)-3000):] }
