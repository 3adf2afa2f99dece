package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ndbridge/ndbridge/internal/watch"
)

// TestRoughFirst: of a large array that somebody asks for, a rough picture comes, and then the one that is meant. If that is drawn before the rough
// one is sent, it comes alone, so several sizes are asked for.
func TestRoughFirst(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np, time\nx = np.random.default_rng(0).random((2048, 2048), np.float32)\nwhile True: time.sleep(1)\n")
	if _, err := session.View(t.Context(), "x"); err != nil { // until it is there
		t.Fatal(err)
	}
	server, end := serve(t, Options{Session: session, Budget: 1})
	conn := openPage(t, server)
	rough := false
	for width := 128; !rough && width < 192; width++ {
		look := fmt.Appendf(nil, `{"look": {"name": "x", "auto": true, "width": %d, "height": 128, "line": -1}}`, width)
		if err := conn.Write(t.Context(), websocket.MessageText, look); err != nil {
			t.Fatal(err)
		}
		var pictures [][]byte
		for len(pictures) < 3 {
			kind, message, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if kind == websocket.MessageBinary && bytes.Contains(message, fmt.Appendf(nil, `"width":%d,`, width)) {
				pictures = append(pictures, message)
			}
		}
		if len(cellsOf(pictures[0])) != len(cellsOf(pictures[1])) || !bytes.Equal(pictures[1], pictures[2]) {
			t.Errorf("pictures of %d, %d and %d bytes; want a rough one, and then the same ones", len(pictures[0]), len(pictures[1]), len(pictures[2]))
		}
		rough = !bytes.Equal(pictures[0], pictures[1])
	}
	if !rough {
		t.Error("no picture was rough")
	}
	end()
}

// cellsOf is what stands behind a picture's header.
func cellsOf(picture []byte) []byte { return picture[4+binary.LittleEndian.Uint32(picture):] }

// TestAskedIsNotHeldUp has a page look at a large array until it has a fine picture, which takes a hundred times what is allowed: neither another array
// nor another part of the same one waits until that is paid for.
func TestAskedIsNotHeldUp(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np, time\nx = np.random.default_rng(0).random((8192, 2048), np.float32)\ny = np.arange(6.0)\nwhile True: time.sleep(1)\n")
	for _, name := range []string{"x", "y"} { // until they are there
		if _, err := session.View(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	server, end := serve(t, Options{Session: session, Budget: 0.001})
	conn := openPage(t, server)
	show(t, t.Context(), conn, "x", "", 2)
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	show(t, soon, conn, "y", "", 1)
	show(t, soon, conn, "x", `, "rows": [100, 8000]`, 1)
	end()
}

// show looks at an array, and waits for so many pictures.
func show(t *testing.T, ctx context.Context, conn *websocket.Conn, name, more string, pictures int) { //nolint:revive // t comes first
	t.Helper()
	look := fmt.Appendf(nil, `{"look": {"name": %q, "auto": true, "width": 400, "height": 400, "line": -1%s}}`, name, more)
	if err := conn.Write(ctx, websocket.MessageText, look); err != nil {
		t.Fatal(err)
	}
	for pictures > 0 {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("%s%s: %v", name, more, err)
		}
		if kind == websocket.MessageBinary && bytes.Contains(message, fmt.Appendf(nil, `"name":%q`, name)) {
			pictures--
		}
	}
}

// TestSmallIsAskedFor: what is drawn at once is not paid for by the pictures that follow rough ones: neither a part of a small array, nor an image, waits for these.
func TestSmallIsAskedFor(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np, time\nx = np.zeros((300, 300), np.uint8)\nwhile True: time.sleep(1)\n")
	if _, err := session.View(t.Context(), "x"); err != nil { // until it is there
		t.Fatal(err)
	}
	server, end := serve(t, Options{Session: session, Budget: 0.01})
	conn := openPage(t, server)
	show(t, t.Context(), conn, "x", "", 1)
	server.hub.mu.Lock()
	for _, p := range []*watch.Pace{server.hub.fine, server.hub.pace, server.hub.readings["x"].fine, server.hub.readings["x"].pace} {
		p.Charge(time.Hour)
	}
	server.hub.mu.Unlock()
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for from := range 3 {
		show(t, soon, conn, "x", fmt.Sprintf(`, "rows": [%d, 290]`, from), 1)
	}
	show(t, soon, conn, "x", `, "image": "HW"`, 1)
	end()
}

// TestFiguresStay: a page that turns to another part of an array that it shows keeps figures of as many elements as it had.
func TestFiguresStay(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np, time\nx = np.ones((500, 500), np.float32)\nx[3, 4] = np.nan\nwhile True: time.sleep(1)\n")
	if _, err := session.View(t.Context(), "x"); err != nil { // until it is there
		t.Fatal(err)
	}
	server, end := serve(t, Options{Session: session, Budget: 1})
	conn := openPage(t, server)
	whole := false
	for from := range 5 {
		look := fmt.Appendf(nil, `{"look": {"name": "x", "auto": true, "width": 64, "height": 64, "line": -1, "rows": [%d, 400]}}`, from)
		if err := conn.Write(t.Context(), websocket.MessageText, look); err != nil {
			t.Fatal(err)
		}
		for told := 0; told < 2; {
			kind, message, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var s struct {
				Topic   string
				Figures *struct{ Seen, NaN int }
			}
			if kind != websocket.MessageText || json.Unmarshal(message, &s) != nil || s.Topic != "array" || s.Figures == nil {
				continue
			}
			told++
			if whole = whole || s.Figures.Seen == 500*500; whole && (s.Figures.Seen != 500*500 || s.Figures.NaN != 1) {
				t.Fatalf("figures of %d elements with %d NaN, after those of all", s.Figures.Seen, s.Figures.NaN)
			}
		}
	}
	if !whole {
		t.Error("the figures were of some elements only")
	}
	end()
}
