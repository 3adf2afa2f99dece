package inspect

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestPinStays turns to another array and back: what was pinned is still compared with, until it is dropped.
func TestPinStays(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np, time\nx, y = np.arange(6.0), np.arange(7.0)\nwhile True: time.sleep(1)\n")
	for _, name := range []string{"x", "y"} { // until they are there
		if _, err := session.View(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	server, end := serve(t, Options{Session: session, Budget: 1})
	conn := openPage(t, server)
	say := func(request string) {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(request)); err != nil {
			t.Fatal(err)
		}
	}
	awaitPinned := func(name string, pinned bool) {
		t.Helper()
		for {
			kind, message, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var s struct {
				Topic, Name string
				Pinned      bool
			}
			if kind == websocket.MessageText && json.Unmarshal(message, &s) == nil && s.Topic == "array" && s.Name == name && s.Pinned == pinned {
				return
			}
		}
	}
	look := func(name string, pinned bool) {
		t.Helper()
		say(fmt.Sprintf(`{"look": {"name": %q, "auto": true, "width": 64, "height": 64, "line": -1}}`, name))
		awaitPinned(name, pinned)
	}
	look("x", false)
	say(`{"pin": true}`)
	awaitPinned("x", true)
	look("y", false)
	look("x", true)
	say(`{"pin": false}`)
	awaitPinned("x", false)
	look("y", false)
	look("x", false)
	end()
}

// TestPinsEnd: what nobody comes back to is dropped, and the oldest if there is too much.
func TestPinsEnd(t *testing.T) {
	t.Parallel()
	keep := func(elements int) *core.View {
		v, err := stats.Keep(t.Context(), coretest.NewView(t, make([]uint8, elements)))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const most, large = 100, 51
	first, second, old := keep(large), keep(large), keep(1)
	synctest.Test(t, func(t *testing.T) {
		p := pins{most: most}
		p.leave("first", first)
		p.leave("second", second)
		if p.take("first") != nil {
			t.Error("more is kept than may be")
		}
		if v := p.take("second"); v != second || p.take("second") != nil {
			t.Errorf("took %v", v)
		}
		p.leave("old", old)
		time.Sleep(pinStays + time.Second)
		synctest.Wait()
		if p.take("old") != nil || len(p.kept) > 0 {
			t.Error("it is kept for too long")
		}
		p.leave("second", second)
		p.close()
		if p.take("second") != nil {
			t.Error("it is kept beyond the end")
		}
	})
}
