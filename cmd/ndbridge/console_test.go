package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestLines holds that each line is written in one piece behind the prefix, however it came, and not more
// of it than people read.
func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"one\ntwo\n"}, "| one\n| two\n"},
		{[]string{"on", "e\nt", "wo"}, "| one\n| two\n"},
		{[]string{"\n\n"}, "| \n| \n"},
		{[]string{"\x1b[2Jgone\tnot\r\n"}, "| \\x1b[2Jgone\tnot\n"},
		{[]string{long, "\n"}, "| " + long + "\n"},
		{[]string{long, "yyy", "\nnext\n"}, "| " + long + " ... (4 more bytes)\n| next\n"},
	} {
		var out bytes.Buffer
		l := newLines(&out, "| ")
		for _, text := range c.writes {
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%q: %d, %v", text, n, err)
			}
		}
		if l.Flush(); out.String() != c.want {
			t.Errorf("%q became %q, want %q", c.writes, out.String(), c.want)
		}
	}
}

// TestProgress holds that progress is for terminals only, goes away above what is written, and ends.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := newConsole(&out)
	c.Progress("waiting for %s", "Godot")
	if _, err := c.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	if c.Stop(); out.String() != "line\n" || c.Unwrap() != &out {
		t.Errorf("no terminal got %q", &out)
	}
	out.Reset()
	c = &console{w: &out, tty: true, doing: "waiting for Godot", begun: time.Now().Add(-3 * patienceForProgress)}
	c.show() // as Progress has done in time
	if _, err := c.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	c.Progress("waiting for %s", "another\x1b[2J\n")
	if want := `waiting for another\x1b[2J\n`; c.doing != want {
		t.Errorf("progress %q, want %q", c.doing, want)
	}
	c.Stop()
	c.Stop()
	if want := eraseLine + "waiting for Godot, 3 s" + eraseLine + "line\n"; out.String() != want {
		t.Errorf("a terminal got %q, want %q", &out, want)
	}
}
