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

// FuzzParse feeds arbitrary datagrams to the reader of status messages.
func FuzzParse(f *testing.F) {
	for _, s := range []Status{
		{Stage: StagePython, Version: "3.11.7", Implementation: "cpython", Executable: "/usr/bin/python3"},
		{Stage: StageError, Kind: KindPython, Type: "ImportError", Message: "m", Traceback: "t"},
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
		if err := s.Err(); (err != nil) != (s.Stage == StageError) {
			t.Fatalf("%+v gives error %v", s, err)
		} else if e, ok := errors.AsType[*core.Error](err); err != nil && (!ok || e.Kind == nil || !e.Remote) {
			t.Fatalf("%+v gives error %#v", s, err)
		}
	})
}
