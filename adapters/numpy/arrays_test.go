package numpy_test

import (
	"crypto/sha256"
	_ "embed" // arrays.py
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/arrays.py
var arraysScript string

// said is what NumPy says about one array, and how it must reach the host; or why it must not.
type said struct {
	Name           string
	DType, Tag     string
	Shape, Strides []int
	ReadOnly       bool `json:"read_only"`
	Route, Reason  string
	SHA256         string

	Error, Text string
}

// pythons lists every interpreter of the matrix, and the one that has ml_dtypes.
func pythons(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, python := range append(programtest.Pythons(t), programtest.Variable(t, "NDBRIDGE_TEST_PYTHON")) {
		all[filepath.Base(filepath.Dir(filepath.Dir(python)))] = python // "3.8-old"
	}
	return all
}

// TestArrays compares the view of each kind of array with what NumPy says of it.
func TestArrays(t *testing.T) {
	t.Parallel()
	for venv, python := range pythons(t) {
		t.Run(venv, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, arraysScript, programtest.Options{Python: python})
			p.Finish(t)
			everything := report(t, p)
			if len(everything) < 140 {
				t.Fatalf("only %d arrays", len(everything))
			}
			for _, s := range everything {
				v, err := p.View(t, "arrays["+strconv.Quote(s.Name)+"]", core.Request{})
				if s.Error != "" {
					err = s.refusal(err)
				} else if err == nil {
					err = s.compare(v)
				}
				if err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
				if v != nil {
					v.Close()
				}
			}
			if info, err := p.Info(t.Context()); err != nil || info.Leases != 0 {
				t.Errorf("%d leases are left (%v)", info.Leases, err)
			}
		})
	}
}

func report(t *testing.T, p *programtest.Program) []said {
	t.Helper()
	v, err := p.View(t, "report", core.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	text, err := v.Uint8s()
	if err != nil {
		t.Fatal(err)
	}
	var everything []said
	if err := json.Unmarshal(text, &everything); err != nil {
		t.Fatal(err)
	}
	return everything
}

// refusal checks the error of an array that cannot be viewed.
func (s *said) refusal(err error) error {
	e, ok := errors.AsType[*core.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("%v, want an error that says %q", err, s.Text) //nolint:errorlint // may be nil
	case core.Category(err) != s.Error || !strings.Contains(err.Error(), s.Text):
		return fmt.Errorf("%w, want %s: %q", err, s.Error, s.Text)
	case e.Quirk != "" && e.Remedy == "":
		return fmt.Errorf("%w names no remedy", err)
	default:
		return nil
	}
}

// compare checks a view against what NumPy says.
func (s *said) compare(v *core.View) error {
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
	if v.Framework() != "numpy" {
		differ("framework", v.Framework(), "numpy")
	}
	if v.Route().String() != s.Route || v.Reason().String() != s.Reason {
		differ("way", fmt.Sprint(v.Route(), " ", v.Reason()), s.Route+" "+s.Reason)
	}
	data := make([]byte, v.NBytes())
	if _, err := core.CopyBytes(data, v); err != nil {
		errs = append(errs, err)
	} else if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != s.SHA256 {
		errs = append(errs, errors.New("other bytes than in NumPy"))
	}
	return errors.Join(errs...)
}
