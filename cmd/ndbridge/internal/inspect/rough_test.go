package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/coder/websocket"
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
