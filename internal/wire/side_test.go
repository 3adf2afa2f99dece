package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/internal/fdpass"
	"github.com/ndbridge/ndbridge/internal/wire"
)

// heard is what a side has told its host, in order.
type heard struct {
	said   chan wire.Status
	forked chan struct{}
}

// side makes a side and the program's end of its socket.
func side(t *testing.T) (*wire.Side, *fdpass.Conn, heard) {
	t.Helper()
	host, file, err := fdpass.Pair()
	if err != nil {
		t.Fatal(err)
	}
	peer, err := fdpass.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := heard{make(chan wire.Status, 64), make(chan struct{}, 64)}
	s := wire.NewSide(host, func(m wire.Status) { h.said <- m }, func() { h.forked <- struct{}{} })
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), peer.Close()); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return s, peer, h
}

// TestSideBelievesNothing: what a program sends that is no message of ours is passed over, or is an error of its start,
// and what comes behind it is heard.
func TestSideBelievesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []string
		files    int // with each
		stages   []string
		forked   int
	}{
		"nothing that is known": {[]string{"x", "D", "Dshort", "Dthis is too long", "LL", "FF", "O", "\x00", "[]"}, 0, nil, 0},
		"forks":                 {[]string{"F", "F"}, 0, nil, 2},
		"forks with files":      {[]string{"F"}, 3, nil, 1},
		"no JSON":               {[]string{"{", `{"stage":`, "{}"}, 0, []string{wire.StageError, wire.StageError, wire.StageError}, 0},
		"a status with files":   {[]string{`{"stage":"python"}`}, 2, []string{wire.StagePython}, 0},
		"a stage of later":      {[]string{`{"stage":"later","new":1}`}, 0, []string{"later"}, 0},
		"a flood": {
			slices.Repeat([]string{`{"stage":"loaded"}`}, 40), 0, slices.Repeat([]string{wire.StageLoaded}, 40), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, peer, h := side(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for _, m := range c.messages {
				if err := peer.Send([]byte(m), slices.Repeat([]*os.File{w}, c.files)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := peer.Send([]byte(`{"stage":"end"}`)); err != nil {
				t.Fatal(err)
			}
			for i := 0; ; i++ {
				m := recv(t, h.said)
				if m.Stage == "end" {
					if i != len(c.stages) {
						t.Errorf("%d messages were heard, want %d", i, len(c.stages))
					}
					break
				}
				if i >= len(c.stages) || m.Stage != c.stages[i] || m.Stage == wire.StageError && m.Kind != wire.KindProtocol {
					t.Errorf("message %d was heard as %.200s", i, fmt.Sprintf("%+v", m))
				}
			}
			if len(h.forked) != c.forked {
				t.Errorf("%d forks were heard, want %d", len(h.forked), c.forked)
			}
			mustEnd(t, r, w) // no file that nobody asked for stays open
		})
	}
}

// TestListening: the socket at which a plugin listens is given once, and a second one is closed.
func TestListening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []int // of each message that says that the plugin listens
		fails string
	}{
		"one":   {files: []int{1}},
		"twice": {files: []int{1, 1}},
		"none":  {files: []int{0}, fails: "0 descriptors"},
		"three": {files: []int{3}, fails: "3 descriptors"},
		"never": {fails: "has not sent the socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, peer, h := side(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for _, n := range c.files {
				if err := peer.Send([]byte(wire.ListeningMessage), slices.Repeat([]*os.File{w}, n)...); err != nil {
					t.Fatal(err)
				}
			}
			if err := peer.Send([]byte(`{"stage":"end"}`)); err != nil { // what came before has been heard then
				t.Fatal(err)
			}
			recv(t, h.said)
			f, err := s.Listening(t.Context())
			switch {
			case c.fails == "" && (err != nil || f == nil):
				t.Errorf("Listening = %v, %v", f, err)
			case c.fails != "" && (f != nil || err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("Listening = %v, %v; want an error with %q", f, err, c.fails)
			}
			if f != nil {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			mustEnd(t, r, w)
		})
	}
}

// TestListeningEnds: who waits for the socket hears that there will be none.
func TestListeningEnds(t *testing.T) {
	t.Parallel()
	s, peer, _ := side(t)
	bored := errors.New("bored")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(bored)
	if f, err := s.Listening(ctx); f != nil || !errors.Is(err, bored) {
		t.Errorf("Listening under a context that has ended = %v, %v", f, err)
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if f, err := s.Listening(t.Context()); f != nil || !errors.Is(err, io.EOF) {
		t.Errorf("Listening to a program that is gone = %v, %v", f, err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("it took %v", took)
	}
	if err := s.Err(); !errors.Is(err, io.EOF) {
		t.Errorf("Err = %v", err)
	}
}
