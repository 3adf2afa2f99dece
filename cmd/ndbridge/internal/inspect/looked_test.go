package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// TestLooks tells pages of arrays that are looked at, how they were the last time, and of no others.
func TestLooks(t *testing.T) {
	t.Parallel()
	const program = `
import os, time
import numpy as np
large, small, other, going = np.zeros((200, 200)), np.zeros(3), np.zeros((200, 200)), np.zeros((200, 200))
begun = time.monotonic()
while True:
    large[:] = time.monotonic() - begun
    if os.path.exists(%q):
        going = "no array"
    time.sleep(0.01)
`
	for _, tt := range []struct {
		all  bool
		want map[string]string // the reason of the copy
	}{
		{false, map[string]string{"large": ""}},
		{true, map[string]string{"large": "", "small": "below-threshold", "other": "", "going": ""}},
	} {
		order := filepath.Join(t.TempDir(), "order")
		o := Options{Session: startProgram(t, fmt.Sprintf(program, order)), Budget: 4}
		if a, err := watch.ParseAlarm("nan"); err == nil && tt.all {
			o.Alarms = []watch.Alarm{a}
		}
		server, end := serve(t, o)
		conn := openPage(t, server)
		showArray(t, conn, "large")
		next := func() map[string]lookedAt {
			for {
				_, text, err := conn.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var m looked
				if json.Unmarshal(text, &m) == nil && m.Topic == "looks" {
					all := map[string]lookedAt{}
					for _, l := range m.Arrays {
						all[l.Name] = l
					}
					return all
				}
			}
		}
		until := func(what string, f func(map[string]lookedAt) bool) {
			t.Helper()
			var got map[string]lookedAt
			for end := time.Now().Add(time.Minute); got == nil || !f(got); got = next() {
				if time.Now().After(end) {
					t.Fatalf("%s: never, at last %+v", what, got)
				}
			}
		}
		until("looks", func(got map[string]lookedAt) bool {
			rate := float64(got["large"].Rate)
			return slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tt.want))) && rate > 0.8 && rate < 1.2
		})
		until("the routes", func(got map[string]lookedAt) bool {
			for name, reason := range tt.want {
				if got[name].Reason != reason || got[name].Route == "" || got[name].Error != "" {
					return false
				}
			}
			return true
		})
		if tt.all {
			if err := os.WriteFile(order, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			until("stale", func(got map[string]lookedAt) bool { return got["going"].Error != "" && got["large"].Error == "" })
		}
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{}`)); err != nil { // a look at nothing
			t.Fatal(err)
		}
		if !tt.all {
			until("nothing", func(got map[string]lookedAt) bool { return len(got) == 0 })
		}
		_ = conn.CloseNow() // else the server waits for an answer
		end()
	}
}

// TestLooksOfOthers tells of nothing that is not looked at any more, or not again yet.
func TestLooksOfOthers(t *testing.T) {
	t.Parallel()
	h := newHub(&Options{Budget: 1})
	h.clients[&client{}] = struct{}{}
	series := func(name, failed string) watch.Series {
		h.recorder.shown[name] = new(atomic.Bool)
		h.recorder.shown[name].Store(name != "hidden")
		return watch.Series{Name: name, Route: "staged", Error: failed}
	}
	h.recorder.state.Arrays = []watch.Series{
		series("gone", "no such name"), series("hidden", ""), series("again", errNotShown.Error()), series("number", ""), series("none yet", ""), {Name: "forgotten", Route: "staged"},
	}
	h.recorder.state.Arrays[3].Number, h.recorder.state.Arrays[4].Route = true, ""
	if m := h.recorder.looks(); len(m.Arrays) != 1 || m.Arrays[0].Name != "gone" || m.Arrays[0].Error != "no such name" {
		t.Errorf("%+v", m)
	}
	clear(h.clients)
	if m := h.recorder.looks(); len(m.Arrays) != 0 {
		t.Errorf("with no page: %+v", m)
	}
}
