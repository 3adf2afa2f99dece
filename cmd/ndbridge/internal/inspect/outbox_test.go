package inspect

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestOutbox gives a slow client the newest message of each topic, and no more.
func TestOutbox(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	for i := range 1000 {
		o.put(aboutArray, message{bytes: fmt.Append(nil, "array ", i)})
		o.put(aboutPicture, message{bytes: fmt.Append(nil, "picture ", i), binary: true})
		o.lazy(aboutHistory, func() (message, bool) { return message{bytes: fmt.Append(nil, "history ", i)}, i%2 == 0 })
	}
	o.put(aboutTree, message{bytes: []byte("tree")})
	o.drop(aboutArray)
	for _, want := range []string{"picture 999", "tree"} { // there was nothing to say of the history
		m, err := o.next(t.Context())
		if err != nil || string(m.bytes) != want {
			t.Errorf("got %q, %v; want %q", m.bytes, err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnded)
	if _, err := o.next(ctx); !errors.Is(err, errEnded) {
		t.Errorf("nothing waits: %v", err)
	}
	o.put(aboutProgram, message{bytes: []byte("gone")})
	if m, err := o.next(ctx); err != nil || string(m.bytes) != "gone" {
		t.Errorf("the last words: %q, %v", m.bytes, err)
	}
}

// TestRing says which versions can be torn, by where they lie.
func TestRing(t *testing.T) {
	t.Parallel()
	var one, four, many ring
	for version := uint64(1); version <= 100; version++ {
		one.lies(version, 0x1000)
		four.lies(version, 0x1000*uintptr(1+version%4))
		many.lies(version, 0x1000*uintptr(version))
	}
	for name, c := range map[string]struct {
		ring            *ring
		version, newest uint64
		whole           bool
	}{
		"one array":                             {&one, 100, 100, false},
		"four buffers, the newest":              {&four, 100, 100, true},
		"four buffers, two behind":              {&four, 98, 100, true},
		"four buffers, three behind":            {&four, 97, 100, false}, // the next one is being written there
		"new arrays, the newest":                {&many, 100, 100, true},
		"new arrays, far behind":                {&many, 5, 100, true},
		"nothing is known yet, the newest":      {&ring{}, 3, 3, true},
		"nothing is known yet, one came":        {&ring{}, 3, 4, false},
		"a few new arrays are no proof of more": {&ring{count: 3}, 3, 4, false},
	} {
		if got := c.ring.whole(c.version, c.newest); got != c.whole {
			t.Errorf("%s: whole is %v", name, got)
		}
	}
}
