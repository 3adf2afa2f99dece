package programtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Said is what a framework itself says about one array, and how that must reach the host; or why it
// must not.
type Said struct {
	Name           string
	DType, Tag     string
	Shape, Strides []int
	ReadOnly       bool `json:"read_only"`
	Route, Reason  string
	SHA256         string // of the elements in row-major order

	Error, Text string // the category, and a part of the error's text
	Quirk       core.QuirkID
	Off         string // part of what Check says while the quirk is off
}

// Report reads what a script has said about its arrays: JSON in an array of bytes.
func Report(tb testing.TB, p *Program, name string) []Said {
	tb.Helper()
	v, err := p.View(tb, name, contract.Request{})
	check(tb, err)
	defer func() { _ = v.Close() }()
	text, err := core.Slice[uint8](v)
	check(tb, err)
	var everything []Said
	check(tb, json.Unmarshal(text, &everything))
	return everything
}

// CheckEach runs a script under each of the interpreters, by their names, takes a view of each array that it has reported
// on, under its name in the dict, and compares. There are at least that many arrays, and no lease is left.
func CheckEach(t *testing.T, pythons map[string]string, env []string, script, framework, dict string, atLeast int) {
	t.Helper()
	for version, python := range pythons {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := Start(t, script, Options{Python: python, Env: env})
			p.Finish(t)
			checkReport(t, p, framework, dict, atLeast)
		})
	}
}

func checkReport(t *testing.T, p *Program, framework, dict string, atLeast int) {
	t.Helper()
	everything := Report(t, p, "report")
	if len(everything) < atLeast {
		t.Fatalf("only %d %s", len(everything), dict)
	}
	for _, s := range everything {
		v, err := p.View(t, dict+"["+strconv.Quote(s.Name)+"]", contract.Request{})
		if err := s.Check(framework, v, err); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if v != nil {
			_ = v.Close()
		}
	}
	if info, err := p.Info(t.Context()); err != nil || info.Leases != 0 {
		t.Errorf("%d leases are left (%v)", info.Leases, err)
	}
	p.tell(t, framework, "arrays", len(everything))
}

// Check compares a view, or the error that came in its place, with what the framework said.
func (s *Said) Check(framework string, v *core.View, err error) error {
	switch {
	case s.Error != "":
		return s.refusal(v, err)
	case err != nil:
		return err
	}
	var errs []error
	differ := func(what string, have, want any) {
		errs = append(errs, fmt.Errorf("%s %v, want %v", what, have, want))
	}
	if v.DType().String() != s.DType || v.Tag() != s.Tag {
		differ("type", fmt.Sprintf("%v %q", v.DType(), v.Tag()), fmt.Sprintf("%v %q", s.DType, s.Tag))
	}
	if !slices.Equal(v.Shape(), s.Shape) {
		differ("shape", v.Shape(), s.Shape)
	}
	for axis, stride := range v.Strides() { // those of axes with fewer elements than two mean nothing
		if v.Len() > 0 && v.Dim(axis) > 1 && stride != s.Strides[axis] {
			differ("strides", v.Strides(), s.Strides)
			break
		}
	}
	if v.ReadOnly() != s.ReadOnly {
		differ("read-only", v.ReadOnly(), s.ReadOnly)
	}
	if v.Framework() != framework {
		differ("framework", v.Framework(), framework)
	}
	if string(v.Route()) != s.Route || string(v.Reason()) != s.Reason {
		differ("way", fmt.Sprint(v.Route(), " ", v.Reason()), s.Route+" "+s.Reason)
	}
	if s.Quirk != "" && !slices.Contains(v.Quirks(), s.Quirk) {
		differ("quirks", v.Quirks(), s.Quirk)
	}
	if s.SHA256 == "" {
		errs = append(errs, errors.New("the report does not tell of the elements"))
	}
	return errors.Join(append(errs, s.bytes(v))...)
}

// refusal checks the error of an array that cannot be viewed.
func (s *Said) refusal(v *core.View, err error) error {
	e, ok := errors.AsType[*core.Error](err)
	switch {
	case v != nil:
		return errors.Join(errors.New("it can be viewed"), s.bytes(v))
	case !ok:
		return fmt.Errorf("%v, want an error that says %q", err, s.Text) //nolint:errorlint // may be nil
	case core.Category(err) != s.Error || !strings.Contains(err.Error(), s.Text):
		return fmt.Errorf("%w, want %s: %q", err, s.Error, s.Text)
	case e.Quirk != "" && e.Remedy == "":
		return fmt.Errorf("%w names no remedy", err)
	case s.Quirk != "" && e.Quirk != s.Quirk:
		return fmt.Errorf("%w, want it to come from the quirk %s", err, s.Quirk)
	default:
		return nil
	}
}

// bytes compares the elements, if the framework told of them.
func (s *Said) bytes(v *core.View) error {
	if s.SHA256 == "" {
		return nil
	}
	data := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(context.Background(), data, v); err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != s.SHA256 {
		return errors.New("other bytes than in the program")
	}
	return nil
}
