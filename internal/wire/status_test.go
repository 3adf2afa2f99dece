package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]error{
		KindVersion: core.ErrVersion, KindUnavailable: core.ErrUnavailable,
		KindConfig: core.ErrConfig, KindPython: core.ErrPython, "": core.ErrProtocol,
	} {
		err := Status{
			Stage: StageError, Kind: kind, Type: "OSError", Message: "went wrong\xff", Remedy: "do this", Traceback: "T",
		}.Err()
		e, ok := errors.AsType[*core.Error](err)
		if !ok || !errors.Is(err, want) || e.Op != "start" || e.Remedy != "do this" || !e.Remote ||
			!strings.Contains(err.Error(), "went wrong\uFFFD") {
			t.Errorf("%q gives %v", kind, err)
		}
		p, isPython := errors.AsType[*core.PythonError](err)
		if isPython != (kind == KindPython) || isPython && (p.Traceback != "T" || p.Type != "OSError") {
			t.Errorf("%q gives exception %+v", kind, p)
		}
	}
}

// TestStatusMessagesCross: what a program says of its start arrives as it was said, in one datagram.
func TestStatusMessagesCross(t *testing.T) {
	t.Parallel()
	for _, want := range []Status{
		{Stage: StagePython, Version: "3.13.1", Implementation: "cpython", Executable: "/opt/größe/python"},
		{Stage: StageLoaded},
		{Stage: StageError, Kind: KindConfig, Message: "no module named \"x\"", Remedy: "name another"},
		{Stage: StageLost, Kind: KindPython, Type: "E", Message: "two\nlines", Traceback: "T\n"},
	} {
		b, err := want.Append([]byte("before"))
		if err != nil || !strings.HasPrefix(string(b), "before{") {
			t.Fatalf("%+v became %q, %v", want, b, err)
		}
		got, err := ParseStatus(b[len("before"):])
		if err != nil || got != want {
			t.Errorf("%+v arrived as %+v, %v", want, got, err)
		}
		if tells := got.Err() != nil; tells != (want.Stage == StageError || want.Stage == StageLost) {
			t.Errorf("%+v: error %v", want, got.Err())
		}
	}
}

func TestParseStatusRefuses(t *testing.T) {
	t.Parallel()
	for name, msg := range map[string]string{
		"nothing": "", "no JSON": "hello", "no object": `[]`, "another type": `{"stage":1}`, "no stage": `{"version":"3.11"}`,
		"an empty stage": `{"stage":""}`, "half": `{"stage":"python"`, "two": `{"stage":"python"}{"stage":"loaded"}`, "null": `null`,
	} {
		if s, err := ParseStatus([]byte(msg)); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
	if s, err := ParseStatus([]byte(`{"stage":"python","later":[1,2]}`)); err != nil || s.Stage != StagePython {
		t.Errorf("a member of a later version: %+v, %v", s, err)
	}
}

// FuzzParse feeds arbitrary datagrams to the reader of status messages.
func FuzzParse(f *testing.F) {
	for _, s := range []Status{
		{Stage: StagePython, Version: "3.11.7", Implementation: "cpython", Executable: "/usr/bin/python3"},
		{Stage: StageError, Kind: KindPython, Type: "ImportError", Message: "m", Traceback: "t"},
		{Stage: StageLost, Kind: KindUnavailable, Message: "m"},
	} {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatus(b)
		if err != nil {
			return
		}
		if err := s.Err(); (err != nil) != (s.Stage == StageError || s.Stage == StageLost) {
			t.Fatalf("%+v gives error %v", s, err)
		} else if e, ok := errors.AsType[*core.Error](err); err != nil && (!ok || e.Kind == nil || !e.Remote) {
			t.Fatalf("%+v gives error %#v", s, err)
		}
	})
}
