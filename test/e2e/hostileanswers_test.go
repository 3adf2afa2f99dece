package e2e

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestHostileAnswers calls functions of plugins whose answers are damaged, also while the host reads them. Whatever comes,
// each call ends, with what is a result or with an error, and nothing stays. The test is not parallel, for it counts
// descriptors.
func TestHostileAnswers(t *testing.T) {
	for seed := range 3 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			before := harness.Held(t)
			var at, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&at)
			meetCallLies(t, seed)
			runtime.GC()
			runtime.ReadMemStats(&now)
			if more := int64(now.HeapAlloc) - int64(at.HeapAlloc); more > 8<<20 {
				t.Errorf("the host holds %d bytes more than before", more)
			}
			before.Same(t)
		})
	}
}

func meetCallLies(t *testing.T, seed int) {
	t.Helper()
	host, err := hostplugin.New(hostplugin.Config{Logger: harness.NewLog().Logger(), Programs: []hostplugin.Program{{
		Name: "liar", Plugin: os.Args[0], Env: map[string]string{callLieEnv: strconv.Itoa(seed)}, StartTimeout: harness.StartBound,
		Workers: callWorkers,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) { // a busy machine may be too slow to end it
			t.Errorf("Close: %v", err)
		}
	}()
	session, err := host.Start(t.Context(), "liar")
	if err != nil {
		t.Fatal(err)
	}
	// While the plugin scribbles, it may damage the answer to Func, too.
	f, err := session.Func(t.Context(), "mutated")
	for tries := 0; err != nil && tries < 100; tries++ {
		mayBe(t, err, false)
		f, err = session.Func(t.Context(), "mutated")
	}
	if err != nil {
		t.Fatal(err)
	}
	var met [2]int // results and errors
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range callWorkers + 1 {
		callers.Go(func() {
			for i := range 500 {
				ok := callMutated(t, f, i%10 == 0)
				mu.Lock()
				met[map[bool]int{true: 0, false: 1}[ok]]++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	if met[0] == 0 || met[1] == 0 {
		t.Errorf("%d results and %d errors", met[0], met[1])
	}
	honestAfter(t, session)
}

// callMutated reports whether the answer was a result.
func callMutated(t *testing.T, f *hostplugin.Func, short bool) bool {
	t.Helper()
	limit := harness.StartBound
	if short {
		limit = 2 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := f.Call(ctx)
	if err != nil {
		mayBe(t, err, short)
		return false
	}
	if _, err := r.Value(); err != nil {
		mayBe(t, err, false)
	}
	var into struct {
		Arrays []*core.View `python:"arrays"`
		Text   string       `python:"text"`
		Rest   []any        `python:"rest"`
	}
	if err := r.Decode(&into); err != nil && !errors.Is(err, core.ErrConfig) { // it may be a value that does not fit
		mayBe(t, err, false)
	}
	const much = 1 << 20
	for _, v := range r.Views() {
		if n := v.NBytes(); n <= much {
			if _, err := core.CopyBytes(ctx, make([]byte, n), v); err != nil {
				mayBe(t, err, short)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return true
}

// mayBe holds that an error is that of a plugin that breaks the protocol, or what the plugin says.
func mayBe(t *testing.T, err error, short bool) {
	t.Helper()
	if short && errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if e, ours := errors.AsType[*core.Error](err); ours && e.Remote {
		return
	}
	for _, kind := range []error{core.ErrProtocol, core.ErrPointer} {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Errorf("error %v, want ErrProtocol", err)
}

// honestAfter holds that the session is as good as new.
func honestAfter(t *testing.T, session *hostplugin.Session) {
	t.Helper()
	f, err := session.Func(t.Context(), "honest") // from now on nothing is damaged
	for tries := 0; err != nil && tries < 100; tries++ {
		mayBe(t, err, false)
		f, err = session.Func(t.Context(), "honest")
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r, err := f.Call(t.Context())
		if err != nil {
			t.Fatalf("an honest answer: %v", err)
		}
		var into struct {
			Text string `python:"text"`
		}
		if err := errors.Join(r.Decode(&into), r.Close()); err != nil || into.Text != "x" {
			t.Errorf("an honest answer is %+v, %v", into, err)
		}
	}
	harness.Eventually(t, harness.StartBound, "no honest lease stands", func() bool {
		info, err := session.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.Leases == 0
	})
}
