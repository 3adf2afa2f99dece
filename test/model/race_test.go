package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// raced is a name of testdata/race.py.
type raced struct {
	name, what string
	rule
}

// rule is what is true of a name, beside what is true of all.
type rule struct {
	inPlace bool // the memory is written: a view that is no copy may show several generations
	zeros   bool // what is new in the array is zero for a while
	flat    bool // the layouts are those of flat arrays
	fixed   bool // there is one layout
	narrow  bool // words have four bytes
	odd     bool // bytes behind the last word
	absent  bool // there may be no array for a while
	dead    bool // there may be an array without memory for a while

	versions bool // it is published again and again
	together bool // with the others of which this is true, at once
}

// races lists what runs together.
func races() map[string][]raced {
	anew, versions := rule{}, rule{versions: true}
	together := rule{versions: true, together: true}
	return map[string][]raced{
		"rebind": {
			{"x", "rebind", anew},
			{`d["k"]`, "rebind", anew},
			{"l[0]", "rebind", anew},
			{"o.a", "rebind", anew},
			{"g", "come_and_go", rule{absent: true}},
			{"c.a", "computed", anew},
			{"p", "published", versions},
		},
		"published": {
			{"p", "published", versions},
			{"p2", "published", versions},
			{"u", "published_and_not", rule{absent: true, versions: true}},
			{"x", "rebind", anew},
		},
		"together": {
			{"m1", "together", together}, {"m2", "together", together}, {"m3", "all_together", together}, {"x", "rebind", anew},
		},
		"in-place": {
			{"w", "small_whole", rule{inPlace: true, fixed: true}},
			{"v", "large_whole", rule{inPlace: true, fixed: true}},
			{"s", "refill", rule{flat: true}},
			{"b", "bytes_that_grow", rule{inPlace: true, fixed: true, odd: true}},
		},
		"resize":          {{"z", "resized", rule{inPlace: true, zeros: true, fixed: true}}, {"s", "refill", rule{flat: true}}},
		"resize-no-check": {{"z", "resized_without_check", rule{inPlace: true, zeros: true, fixed: true}}},
		"torch": {
			{"e", "torch_data", rule{fixed: true}},
			{"pt", "torch_published", rule{fixed: true}},
			{"x", "rebind", anew},
		},
		// Tensor.set_ changes the storage and then the sizes, and has not the GIL meanwhile.
		"torch-set": {{"t", "torch_set", rule{fixed: true}}, {"x", "rebind", anew}},
		"jax": {
			{"j", "jax_donated", rule{fixed: true, narrow: true, dead: true}},
			{"a", "jax_alias", rule{inPlace: true, fixed: true}},
			{"x", "rebind", anew},
		},
		"forks": {
			{"x", "rebind", anew},
			{"v", "large_whole", rule{inPlace: true, fixed: true}},
			{"p", "published", versions},
			{"", "forks", anew},
			{"s", "refill", rule{flat: true}},
		},
	}
}

// TestRace looks at arrays that change at full speed, by every route and with each kind of session.
func TestRace(t *testing.T) {
	total := fuzzTime(t) / 3
	names := []string{"rebind", "published", "together", "in-place", "resize", "resize-no-check", "torch", "torch-set", "jax", "forks"}
	seed := firstSeed()
	rng := rand.New(rand.NewPCG(seed, 4))
	ways := map[string]func(*hostplugin.Program){
		"heap":    func(*hostplugin.Program) {},
		"no-heap": func(p *hostplugin.Program) { p.SharedHeap.Off = true },
		"grpc":    func(p *hostplugin.Program) { p.Handoff.Off = true },
	}
	end := time.Now().Add(total)
	for round := 0; round < 1 || time.Now().Before(end); round++ {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if time.Now().After(end) {
				return
			}
			way := []string{"heap", "no-heap", "grpc"}[rng.IntN(3)]
			if *setupFlag != "" && *setupFlag != name && *setupFlag != name+"-"+way {
				continue
			}
			t.Run(fmt.Sprintf("%s-%s-%d", name, way, round), func(t *testing.T) {
				race(t, races()[name], ways[way], max(2*time.Second, total/16), strings.HasPrefix(name, "torch") || name == "jax", rng.Uint64())
			})
		}
	}
}

// counters is the file in which the program counts generations.
type counters []byte

func (c counters) at(i int) uint64   { return binary.LittleEndian.Uint64(c[8*i:]) }
func (c counters) begun(n int) int64 { return int64(c.at(2 * n)) }   //nolint:gosec // small
func (c counters) done(n int) int64  { return int64(c.at(2*n + 1)) } //nolint:gosec // small

func newCounters(t *testing.T) (counters, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counters")
	if err := os.WriteFile(file, make([]byte, os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(c); err != nil {
			t.Error(err)
		}
	})
	return c, file
}

// arguments gives those of race.py.
func arguments(t *testing.T, names []raced, file, errorsFile string) []string {
	t.Helper()
	var list [][]string
	for _, n := range names {
		list = append(list, []string{n.name, n.what})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return []string{file, errorsFile, "0.0005", string(text)}
}

// exceptions is what the program met, by what it did; each has a count and an example.
type exceptions map[string][]any

func readExceptions(t *testing.T, file string) exceptions {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the program did not say what it met: %v", err)
	}
	var met exceptions
	if err := json.Unmarshal(text, &met); err != nil {
		t.Fatal(err)
	}
	return met
}

// race runs the program under a host, and then without one, which may meet no less.
func race(t *testing.T, names []raced, change func(*hostplugin.Program), d time.Duration, frameworks bool, seed uint64) {
	python := harness.Python(t)
	if frameworks {
		python = harness.PythonAll(t)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "race.py"))
	if err != nil {
		t.Fatal(err)
	}
	c, file := newCounters(t)
	met := filepath.Join(t.TempDir(), "errors")
	program := hostplugin.Program{
		Name: "race", Python: python, Script: script, Args: arguments(t, names, file, met), Env: programEnv,
		Plugin: harness.Library(t, "ndbridge-all.so"), StartTimeout: answerBound,
	}
	change(&program)
	log := harness.NewLog()
	host, err := hostplugin.New(hostplugin.Config{Programs: []hostplugin.Program{program}, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d\n%s", seed, tail(log.Text()))
		}
	}()
	session, err := host.Start(t.Context(), "race")
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*answerBound, "all names are there", func() bool { return c.at(1) == 1 })
	r := &racer{t: t, names: names, counters: c, session: session, end: time.Now().Add(d), versions: !program.Handoff.Off, routes: map[string]int{}}
	var group sync.WaitGroup
	for worker := range 3 {
		group.Go(func() { r.work(t.Context(), rand.New(rand.NewPCG(seed, uint64(worker)))) }) //nolint:gosec // not negative
	}
	group.Wait()
	binary.LittleEndian.PutUint64(c, 1) // stop
	if err := session.Wait(t.Context()); err != nil {
		t.Fatalf("the program: %v", err)
	}
	under := readExceptions(t, met)
	if len(under) > 0 {
		alone := raceAlone(t, python, script, names)
		for what, example := range under {
			if alone[what] == nil {
				t.Errorf("the program met what it does not meet without a host: %s, %v times\n%v", what, example[0], example[1])
			}
		}
	}
	t.Logf("%v; %v generations", r.routes, r.generations())
}

// raceAlone runs the program without a host for a moment.
func raceAlone(t *testing.T, python, script string, names []raced) exceptions {
	t.Helper()
	c, file := newCounters(t)
	met := filepath.Join(t.TempDir(), "errors")
	cmd := exec.CommandContext(t.Context(), python, append([]string{script}, arguments(t, names, file, met)...)...) //nolint:gosec // the test's own
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*answerBound, "all names are there", func() bool { return c.at(1) == 1 })
	until := time.Now().Add(2 * time.Second)
	harness.Eventually(t, answerBound, "it has run for a moment", func() bool { return time.Now().After(until) })
	binary.LittleEndian.PutUint64(c, 1)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the program without a host: %v", err)
	}
	return readExceptions(t, met)
}
