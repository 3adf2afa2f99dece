package inspect

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core/coretest"
)

// pieces keeps what was written, and the longest piece of it.
type pieces struct {
	strings.Builder

	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.Builder.Write(b)
}

// WriteString keeps io.WriteString from passing by.
func (p *pieces) WriteString(s string) (int, error) { return p.Write([]byte(s)) }

// TestLongRows writes rows of many elements in pieces.
func TestLongRows(t *testing.T) {
	t.Parallel()
	const n = 3*csvPiece + 5
	all := make([]uint8, 2*n)
	var texts [2][]string
	for i := range all {
		all[i] = uint8(i % 251)
		texts[i/n] = append(texts[i/n], strconv.Itoa(i%251))
	}
	row := func(i int) string { return strings.Join(texts[i], ",") + "\n" }
	for name, c := range map[string]struct {
		n     int
		shape []int
		want  string
	}{
		"rows":    {2 * n, []int{2, n}, row(0) + row(1)},
		"indexed": {2 * n, []int{2, 1, n}, "0,0," + row(0) + "1,0," + row(1)},
		"line":    {2 * n, []int{2 * n}, strings.Join(append(texts[0][:n:n], texts[1]...), "\n") + "\n"},
		"empty":   {0, []int{0}, ""},
		"nothing": {0, []int{1, 1, 0}, "0,0\n"},
	} {
		var out pieces
		if err := writeCSV(t.Context(), &out, coretest.NewView(t, all[:c.n], c.shape...)); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want || out.longest > 4*csvPiece+8 {
			t.Errorf("%s: %d bytes, want %d; the longest piece is of %d", name, out.Len(), len(c.want), out.longest)
		}
	}
}

// full takes the beginning of a file only.
type full struct{ *httptest.ResponseRecorder }

func (f full) Write(b []byte) (int, error) {
	if f.Body.Len() > 1<<20 {
		return 0, io.ErrShortWrite
	}
	return f.ResponseRecorder.Write(b)
}

// TestNoFile tells names that mean nothing from arrays that cannot be saved so.
func TestNoFile(t *testing.T) {
	t.Parallel()
	session := startProgram(t, "import numpy as np\nlong = np.zeros(3, np.longdouble)\ndates = np.zeros(3, 'M8[D]')\na = np.zeros(3)\nnumber = 1.5\n"+
		"wide = np.broadcast_to(np.float32(1), (2**20, 2**20))\nrepeated = np.broadcast_to(np.float32(1), (300, 300))\n")
	if err := session.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := &Server{options: Options{Session: session}}
	said := ""
	check := func(name, kind string, want int) {
		t.Helper()
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?name="+name, nil), httptest.NewRecorder()
		r.SetPathValue("kind", kind)
		if server.export(full{w}, r); w.Code != want {
			t.Errorf("%s of %s: %d, want %d: %s", kind, name, w.Code, want, w.Body)
		}
		said = w.Body.String()
	}
	check("a", "csv", http.StatusOK)
	check("dates", "npy", http.StatusOK)
	check("dates", "csv", http.StatusUnprocessableEntity)
	check("long", "csv", http.StatusUnprocessableEntity)
	check("number", "csv", http.StatusUnprocessableEntity)
	check("nothing", "csv", http.StatusNotFound)
	check("a", "txt", http.StatusNotFound)
	check("wide", "npy", http.StatusUnprocessableEntity)
	if !strings.Contains(said, "save wide: layout not supported: its elements repeat others and are 4.0 TiB in all; at most 64.0 GiB are saved; save the array that it was made of") {
		t.Error(said)
	}
	check("wide", "csv", http.StatusUnprocessableEntity)
	check("repeated", "npy", http.StatusOK)
	leave, err := session.Func(t.Context(), "os:_exit")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = leave.Call(t.Context(), 3) // it has no answer
	<-session.Done()
	check("a", "csv", http.StatusServiceUnavailable)
}

// TestDrawnChannels draws the first channels of many, and reads no others.
func TestDrawnChannels(t *testing.T) {
	t.Parallel()
	for channels, want := range map[int]string{1: "01 01 01 ff", 2: "01 01 01 ff", 3: "01 02 03 ff", 4: "01 02 03 04", 5: "01 02 03 ff", 4000: "01 02 03 ff"} {
		all := make([]uint8, channels)
		for i := range all {
			all[i] = uint8(i%200 + 1)
		}
		v := coretest.NewView(t, all, 1, 1, channels)
		l := look{Image: "HWC", Width: 8, Height: 8, At: make([]int, 3)}
		s, err := newSheet(v, l)
		if err != nil {
			t.Fatal(err)
		}
		if tile, err := s.tile(t.Context(), 0); err != nil || len(tile) > 4 {
			t.Errorf("%d channels: %d are read, %v", channels, len(tile), err)
		}
		_ = s.tiles.Close() // derived
		m, err := drawImage(t.Context(), v, l, picture{})
		if err != nil {
			t.Fatal(err)
		}
		header := 4 + int(binary.LittleEndian.Uint32(m.bytes))
		if !json.Valid(m.bytes[4:header]) {
			t.Errorf("%s", m.bytes[4:header])
		}
		if got := fmt.Sprintf("% x", m.bytes[header:]); got != want {
			t.Errorf("%d channels: %s, want %s", channels, got, want)
		}
	}
}
