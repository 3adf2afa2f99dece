package doctor

import (
	"bytes"
	"encoding/json"
	"testing"
)

// wrongPart has something of everything.
func wrongPart() *Part {
	p := newPart("numpy")
	p.Version, p.SharedHeap = "2.4.6", "on"
	p.Tried = append(p.Tried, Trial{"a", "shared-heap", "", 0.25, true, true},
		Trial{"b", "", "wrong dtype", 0.5, false, true}, Trial{"c", "", "odd", 1, false, false})
	p.Routes["shared-heap"], p.Routes["refused"] = 1, 1
	p.Quirks = append(p.Quirks, Quirk{"numpy.one", true}, Quirk{"numpy.two", false}, Quirk{"numpy.three", true})
	p.wrong("c: odd", "mend it")
	p.Notes = append(p.Notes, Problem{"it could be better", "better it"})
	return p
}

// TestPrint holds what people read.
func TestPrint(t *testing.T) {
	t.Parallel()
	absent := newPart("jax")
	absent.State = Absent
	interpreter := newPart("interpreter")
	interpreter.Version, interpreter.Interpreter = "3.11.7", "CPython 3.11.7 (/usr/bin/python3)"
	interpreter.Plugin, interpreter.SharedHeap = "all 0.1.0", "on"
	for want, p := range map[string]*Part{
		`wrong  numpy        2.4.6
                    3 arrays, 0.5 ms each: 1 refused, 1 shared-heap; writing works both ways
                    quirks at work: numpy.one, numpy.three
                    in force, not tried: numpy.two
                    c: odd
                      remedy: mend it
                    note: it could be better
                      remedy: better it
`: wrongPart(),
		`-      jax          not installed
`: absent,
		`ok     interpreter  CPython 3.11.7 (/usr/bin/python3)
                    plugin all 0.1.0, shared heap on
`: interpreter,
		`ok     dali
`: newPart("dali"),
	} {
		var plain, coloured bytes.Buffer
		if err := p.Print(&plain, false); err != nil || plain.String() != want {
			t.Errorf("%v, got:\n%s\nwant:\n%s", err, &plain, want)
		}
		if err := p.Print(&coloured, true); err != nil || coloured.Len() <= plain.Len() || coloured.Bytes()[0] != '\x1b' {
			t.Errorf("%v, got %q", err, &coloured)
		}
	}
}

// TestJSON holds the keys that scripts depend on.
func TestJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(wrongPart())
	want := `{"part":"numpy","state":"wrong","version":"2.4.6","interpreter":"","plugin":"","shared_heap":"on",` +
		`"tried":[{"name":"a","route":"shared-heap","reason":"","milliseconds":0.25,"written":true,"ok":true},` +
		`{"name":"b","route":"","reason":"wrong dtype","milliseconds":0.5,"written":false,"ok":true},` +
		`{"name":"c","route":"","reason":"odd","milliseconds":1,"written":false,"ok":false}],` +
		`"routes":{"refused":1,"shared-heap":1},` +
		`"quirks":[{"id":"numpy.one","seen":true},{"id":"numpy.two","seen":false},{"id":"numpy.three","seen":true}],` +
		`"problems":[{"message":"c: odd","remedy":"mend it"}],"notes":[{"message":"it could be better","remedy":"better it"}]}`
	if err != nil || string(text) != want {
		t.Errorf("%v, got %s", err, text)
	}
	if text, err = json.Marshal(newPart("jax")); err != nil || bytes.Contains(text, []byte("null")) {
		t.Errorf("%v, got %s", err, text)
	}
}
