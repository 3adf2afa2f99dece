package hostplugin

import (
	"errors"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/values"
)

// returns gives the Result of a function that has returned v, and an array.
func returns(t *testing.T, s *Session, v string) Result {
	t.Helper()
	o := s.returned("f")
	var err error
	if o.answer.Values, err = values.Append(o.answer.Values, v, nil); err != nil {
		t.Error(err)
	}
	o.views = append(o.views, coretest.NewView(t, []float32{1, 2}))
	return o.result()
}

// TestResultsThatAreClosed have nothing, and never what a later one has that stands on the same memory.
func TestResultsThatAreClosed(t *testing.T) {
	t.Parallel()
	s := new(Session)
	closed := map[string]Result{"zero": {}}
	for {
		first := returns(t, s, "first")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := returns(t, s, "second")
		same := second.of == first.of // the race detector has a sync.Pool lose things
		for name, r := range closed {
			var text string
			_, err := r.Value()
			if decoded := r.Decode(&text); !errors.Is(err, core.ErrClosed) || !errors.Is(decoded, core.ErrClosed) || text != "" {
				t.Errorf("%s: a closed result gives %q, %v and %v", name, text, err, decoded)
			}
			if r.View() != nil || r.Views() != nil || r.Close() != nil {
				t.Errorf("%s: a closed result has views, or cannot be closed again", name)
			}
		}
		closed["first"] = first
		var text string
		if err := second.Decode(&text); err != nil || text != "second" || len(second.Views()) != 1 {
			t.Errorf("the second result is %q, %v", text, err)
		}
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		closed["second"] = second
		if same && len(closed) == 3 {
			return
		}
	}
}

// TestResultsBesideClose: a copy that another goroutine has shows what it stands for or nothing, whatever becomes of the others.
func TestResultsBesideClose(t *testing.T) {
	t.Parallel()
	s := new(Session)
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for i := range 500 {
				want := []string{"a", "bcd", "efghijk"}[i%3]
				r := returns(t, s, want)
				views := r.Views()
				for range 2 {
					callers.Go(func() {
						for range 20 {
							var got string
							if err := r.Decode(&got); err == nil && got != want || err != nil && !errors.Is(err, core.ErrClosed) {
								t.Errorf("a result is %q, %v, want %q", got, err, want)
							}
							if now := r.Views(); len(now) > 0 && now[0] != views[0] {
								t.Error("a result has a view of another one")
							}
						}
						if err := r.Close(); err != nil {
							t.Error(err)
						}
					})
				}
			}
		})
	}
	callers.Wait()
}
